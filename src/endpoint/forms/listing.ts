/** Lists whose elements are made one by one, while the list is sent, in the spellings they are asked for in. */
import { isObject, JsonError, parseJson } from '../../kube/json/json.ts'
import { yamlPieces } from '../../kube/json/yaml/yaml.ts'
import { internalError } from '../../kube/status.ts'
import { indented } from './indent.ts'

export type SpelledList = {
  /** The JSON before and behind the elements. */
  readonly head: string
  readonly end: string
  /** The member that holds the elements. */
  readonly member: 'items' | 'rows'
  /** Each in pieces, without what stands between them. */
  readonly elements: Iterable<readonly Buffer[]>
  /** What an element is called that cannot be spelled. */
  readonly nameOf: (index: number) => string
}

/** Pieces that are made as they are taken, of which only the size is known. */
export type LazyBody = { readonly bytes: number; readonly pieces: Iterable<Buffer> }

const comma = Buffer.from(',')

export function* inJson({ head, elements, end }: SpelledList): Generator<Buffer, void, void> {
  yield Buffer.from(head)
  let isFirst = true
  for (const pieces of elements) {
    if (!isFirst) yield comma
    isFirst = false
    yield* pieces
  }
  yield Buffer.from(end)
}

export function inIndentedJson(listing: SpelledList): Iterable<Buffer> {
  return indented(inJson(listing))
}

export function* inYaml({ head, end, member, elements, nameOf }: SpelledList): Generator<Buffer, void, void> {
  const around = parseJson(head + end)
  if (!isObject(around)) throw new Error('a list is an object')
  const trees = (function* () {
    let index = 0
    for (const pieces of elements) yield treeOf(Buffer.concat(pieces), nameOf(index++))
  })()
  yield* encoded(yamlPieces(around, { member, elements: trees }))
}

/** One object or document. */
export function* objectInYaml(json: Buffer): Generator<Buffer, void, void> {
  yield* encoded(yamlPieces(treeOf(json, 'the object')))
}

/** Go reads ten times as many levels as a tree may have here. */
function treeOf(json: Buffer, name: string): ReturnType<typeof parseJson> {
  try {
    return parseJson(json)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw internalError(`${name} cannot be written in YAML: ${error.message}`)
  }
}

/** Lines are short: many are encoded together. */
const textMax = 8 * 1024

function* encoded(pieces: Iterable<string>): Generator<Buffer, void, void> {
  let text = ''
  for (const piece of pieces) {
    text += piece
    // An empty one is a pause in long work.
    if (text.length < textMax && piece !== '') continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}
