/**
 * Gives back the memory that reading the store at start took: V8 grows its young generation for such a burst and keeps it.
 * Node has no function for this; its collector can be asked through a flag.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

export function releaseMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
