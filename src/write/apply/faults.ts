/** What is wrong with a value of a type, in the words of kube-apiserver's merge library, each with its path. */

import { type PathElement, printElement } from './pathelement.ts'

/** How many are looked for: a list of more helps no client, and a large configuration can have one in every value. */
export const faultsMax = 100

/** Of all faults together: every one of them repeats the path that leads to it, however long its names are. */
const textMax = 1024 * 1024

export type Fault = { readonly path: string; readonly message: string }

export function fault(message: string): Fault[] {
  return [{ path: '', message }]
}

/** The same faults seen from one step further up. */
export function below(element: PathElement, faults: readonly Fault[]): readonly Fault[] {
  if (faults.length === 0) return faults
  const step = printElement(element)
  return faults.map(({ path, message }) => ({ path: step + path, message }))
}

/** One as it is, several as a list. */
function printFaults(faults: readonly Fault[]): string {
  const lines: string[] = []
  let size = 0
  for (const { path, message } of faults) {
    size += path.length + message.length
    if (size > textMax && lines.length > 0) break
    lines.push(path === '' ? message : `${path}: ${message}`)
  }
  return faults.length === 1 ? lines.join('') : ['errors:', ...lines.map((line) => `  ${line}`)].join('\n')
}

/** A value that its type does not admit; the message has all its faults. */
export class TypeFault extends Error {
  constructor(faults: readonly Fault[]) {
    super(printFaults(faults))
  }
}
