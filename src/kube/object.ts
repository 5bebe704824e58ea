/**
 * One pass over an object's JSON bytes that finds what reading needs: identity, version, labels, the selectable fields
 * asked for, and where metadata and the version stand, so that other forms of the object are made by splicing bytes.
 */
import { eachMember, isKey, ScanFault, skipValue, stringAt } from './json/scan.ts'
import { sharedText } from './json/texts.ts'
import { comma, openBrace, openBracket, quote, skipSpace } from './json/wellformed.ts'

/** What a scan of one object's bytes found. Offsets are into those bytes. */
export type Scan = {
  name: string
  namespace: string
  /** The uid's value, quotes included, which is read where it is wanted (`uidAt`); -1 when absent. */
  uidStart: number
  /** As spelled; '' when absent. */
  resourceVersion: string
  /** The characters of the version inside its quotes; -1 when absent. */
  versionStart: number
  versionEnd: number
  /** The metadata value, braces included; -1 when absent. */
  metadataStart: number
  metadataEnd: number
  /** Where the members after a leading apiVersion and kind begin: 1 if there are none in front. */
  bodyStart: number
  labels: Labels | undefined
  /** Values of the planned fields, in plan order; '' when absent. */
  fields: readonly string[]
}

/** Which dotted paths to read besides metadata. Compiled once per resource. */
export type FieldPlan = { readonly paths: readonly string[]; readonly root: PlanNode }
/** Keys are compared as bytes: making a string of every key of every object would be half the cost of a scan. */
type PlanNode = { readonly key: Buffer; readonly index: number; readonly children: readonly PlanNode[] | undefined }

/** An object's labels as pairs in one array: a Map for each of ten thousand objects would weigh more than their text. */
export class Labels {
  readonly #pairs: readonly string[]

  constructor(pairs: readonly string[]) {
    this.#pairs = pairs
  }

  get(label: string): string | undefined {
    const pairs = this.#pairs
    for (let i = 0; i < pairs.length; i += 2) if (pairs[i] === label) return pairs[i + 1]
    return undefined
  }

  has(label: string): boolean {
    return this.get(label) !== undefined
  }

  get size(): number {
    return this.#pairs.length / 2
  }

  *[Symbol.iterator](): Generator<readonly [label: string, value: string]> {
    const pairs = this.#pairs
    for (let i = 0; i < pairs.length; i += 2) yield [pairs[i] as string, pairs[i + 1] as string]
  }
}

export function planFields(paths: readonly string[]): FieldPlan {
  type Growing = { key: Buffer; index: number; children: Growing[] | undefined }
  const root: Growing = { key: Buffer.alloc(0), index: -1, children: undefined }
  paths.forEach((path, index) => {
    let node = root
    for (const part of path.split('.')) {
      const key = Buffer.from(part)
      node.children ??= []
      let child = node.children.find((one) => one.key.equals(key))
      if (child === undefined) {
        child = { key, index: -1, children: undefined }
        node.children.push(child)
      }
      node = child
    }
    node.index = index
  })
  return { paths, root }
}

export const noFields: FieldPlan = planFields([])
const noValues: readonly string[] = []

/** All of the bytes are read, and checked to the letter: what is no JSON object, or more than one, is a `ScanFault`. */
export function scanObject(bytes: Buffer, plan: FieldPlan = noFields): Scan {
  const scan: Scan = {
    name: '',
    namespace: '',
    uidStart: -1,
    resourceVersion: '',
    versionStart: -1,
    versionEnd: -1,
    metadataStart: -1,
    metadataEnd: -1,
    bodyStart: 1,
    labels: undefined,
    fields: noValues,
  }
  const values = plan.paths.length === 0 ? undefined : new Array<string>(plan.paths.length).fill('')
  if (values !== undefined) scan.fields = values
  let heads = true
  const end = eachMember(bytes, skipSpace(bytes, 0), (from, to, at) => {
    if (isKey(bytes, from, to, metadataKey)) {
      heads = false
      scan.metadataStart = at
      scan.metadataEnd = scanMetadata(bytes, at, scan)
      return scan.metadataEnd
    }
    if (heads && (isKey(bytes, from, to, apiVersionKey) || isKey(bytes, from, to, kindKey))) {
      const end = skipValue(bytes, at)
      const next = skipSpace(bytes, end)
      // Only a member that is followed by another can be cut off together with its comma.
      if (bytes[next] === comma) scan.bodyStart = skipSpace(bytes, next + 1)
      return end
    }
    heads = false
    const node = values === undefined ? undefined : childOf(plan.root, bytes, from, to)
    return node === undefined ? skipValue(bytes, at) : readPlanned(bytes, at, node, values as string[])
  })
  if (end !== bytes.length && skipSpace(bytes, end) !== bytes.length) throw new ScanFault('something follows an object')
  return scan
}

const metadataKey = Buffer.from('metadata')
const apiVersionKey = Buffer.from('apiVersion')
const kindKey = Buffer.from('kind')
const nameKey = Buffer.from('name')
const namespaceKey = Buffer.from('namespace')
const uidKey = Buffer.from('uid')
const versionKey = Buffer.from('resourceVersion')
const labelsKey = Buffer.from('labels')

function childOf(node: PlanNode, bytes: Buffer, from: number, to: number): PlanNode | undefined {
  const { children } = node
  if (children === undefined) return undefined
  for (const child of children) if (isKey(bytes, from, to, child.key)) return child
  return undefined
}

function scanMetadata(bytes: Buffer, start: number, scan: Scan): number {
  return eachMember(bytes, start, (from, to, at) => {
    const end = skipValue(bytes, at)
    if (isKey(bytes, from, to, nameKey)) scan.name = scalar(bytes, at, end)
    else if (isKey(bytes, from, to, namespaceKey)) scan.namespace = sharedScalar(bytes, at, end)
    else if (isKey(bytes, from, to, uidKey)) scan.uidStart = at
    else if (isKey(bytes, from, to, versionKey)) {
      if (bytes[at] === quote) {
        scan.versionStart = at + 1
        scan.versionEnd = end - 1
        scan.resourceVersion = bytes.toString('latin1', at + 1, end - 1)
      }
    } else if (isKey(bytes, from, to, labelsKey) && bytes[at] === openBrace) scan.labels = readLabels(bytes, at)
    return end
  })
}

/** The uid of an object that was scanned. */
export function uidAt(bytes: Buffer, uidStart: number): string {
  return uidStart < 0 ? '' : scalar(bytes, uidStart, skipValue(bytes, uidStart))
}

function readLabels(bytes: Buffer, start: number): Labels | undefined {
  const pairs: string[] = []
  eachMember(bytes, start, (from, to, at) => {
    const end = skipValue(bytes, at)
    pairs.push(sharedScalar(bytes, from - 1, to + 1), sharedScalar(bytes, at, end))
    return end
  })
  return pairs.length === 0 ? undefined : new Labels(pairs)
}

function readPlanned(bytes: Buffer, at: number, node: PlanNode, values: string[]): number {
  if (node.children !== undefined && bytes[at] === openBrace) {
    return eachMember(bytes, at, (from, to, member) => {
      const child = childOf(node, bytes, from, to)
      return child === undefined ? skipValue(bytes, member) : readPlanned(bytes, member, child, values)
    })
  }
  const end = skipValue(bytes, at)
  const first = bytes[at]
  if (node.index >= 0 && first !== openBrace && first !== openBracket) values[node.index] = sharedScalar(bytes, at, end)
  return end
}

/** A string's text, or a number or boolean as spelled; null reads as absent. */
function scalar(bytes: Buffer, start: number, end: number): string {
  if (bytes[start] !== quote) {
    const text = bytes.toString('latin1', start, end)
    return text === 'null' ? '' : text
  }
  return stringAt(bytes, start, end)
}

/** The same, of what repeats from object to object. */
function sharedScalar(bytes: Buffer, start: number, end: number): string {
  return (bytes[start] === quote ? sharedText(bytes, start, end) : undefined) ?? scalar(bytes, start, end)
}
