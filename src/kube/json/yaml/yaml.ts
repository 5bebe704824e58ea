/**
 * YAML as kube-apiserver reads it (application/yaml bodies, kubectl's files) and writes it. The parser is loaded when
 * the first document comes: most clients speak JSON only. Printing needs no library.
 */
import { bytewise } from '../goformat.ts'
import { quoted } from '../gotext.ts'
import { type Json, JsonError, Spelled } from '../json.ts'
import { DEPTH_MAX } from '../reader.ts'
import { plainValue } from './scalar.ts'

export { printYaml, yamlPieces } from './print.ts'

/** More nodes than this cannot come from a body of legal size. */
const NODES_MAX = 2_000_000

/**
 * Aliases make a small text expand: so many nodes and characters for each of its own, and some more for a short one. What is done with a
 * document takes time by its size, and goes by that of its text: a body of little is not much.
 */
const expansionMax = { times: 10, more: 128 * 1024 }

/** More complaints than this help no reader, and each costs a reading of the text. */
const REPEATED_MAX = 20

/** Characters that are read for complaints after the first one: a body of 3 MiB, which takes a second, is not read 20 times. */
const REREAD_CHARACTERS_MAX = 1024 * 1024

/** Lets others in between two readings of a text, or its reading and what is made of it. */
type Between = () => Promise<void>

/** `spared`: how many repeated keys are let pass; the next one is an error. */
type Load = (text: string, between?: Between, spared?: number) => Promise<unknown>

let loading: Promise<Load> | undefined

/** The first document, the keys of each object in order, as Go leaves them; throws JsonError. Of repeated keys the last wins. */
export async function parseYaml(source: Buffer | string, between?: Between): Promise<Json> {
  loading ??= loader()
  const load = await loading
  const text = typeof source === 'string' ? source : source.toString('utf8')
  const document = await load(text, between)
  await between?.()
  return converter(text.length * expansionMax.times + expansionMax.more)(document, 0)
}

/** The keys that stand twice in a document that can be read, as Go complains: `line 3: key "a" already set in map`. */
export async function repeatedKeys(source: Buffer, between?: Between): Promise<string[]> {
  loading ??= loader()
  const load = await loading
  const text = source.toString('utf8')
  const found: string[] = []
  while (found.length < REPEATED_MAX && found.length * text.length <= REREAD_CHARACTERS_MAX) {
    await between?.()
    try {
      await load(text, between, found.length)
      break
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      found.push(error.message.slice(FAULT.length))
    }
  }
  return found
}

const FAULT = 'error converting YAML to JSON: yaml: '

async function loader(): Promise<Load> {
  const yaml = await import('js-yaml')
  let left = Number.POSITIVE_INFINITY
  const plain = yaml.defineScalarTag('tag:yaml.org,2002:null', {
    implicit: true,
    resolve: (source, isExplicit) => {
      const value = isExplicit ? null : plainValue(source)
      return typeof value === 'string' ? yaml.NOT_RESOLVED : value
    },
    identify: () => false,
  })
  const typed = ['bool', 'int', 'float', 'timestamp'].map((name) =>
    yaml.defineScalarTag(`tag:yaml.org,2002:${name}`, { resolve: plainValue, identify: () => false }),
  )
  const mapping = yaml.defineMappingTag('tag:yaml.org,2002:map', {
    create: () => new Map<unknown, unknown>(),
    addPair: (map, key, value) => {
      if (map.has(key) && left-- <= 0) {
        return `key ${typeof key === 'string' ? quoted(key) : keyText(key)} already set in map`
      }
      map.set(key, value)
      return ''
    },
    // Go's library lets whatever comes later win: a repeated key, and a merge (<<) after a key.
    has: () => false,
    keys: (map) => map.keys(),
    get: (map, key) => map.get(key),
    identify: () => false,
  })
  const schema = new yaml.Schema([yaml.strTag, yaml.seqTag, mapping, plain, ...typed, yaml.mergeTag])
  return async (text, between, spared = Number.POSITIVE_INFINITY) => {
    try {
      const events = yaml.parseEvents(text, { maxDepth: DEPTH_MAX })
      await between?.()
      left = spared
      return yaml.constructFromEvents(events, { schema, source: text })[0] ?? null
    } catch (error) {
      if (!(error instanceof yaml.YAMLException)) throw error
      const line = error.mark === undefined ? '' : `line ${error.mark.line + 1}: `
      throw new JsonError(`${FAULT}${line}${error.reason}`)
    }
  }
}

/** To Json: keys become strings as in JSON, shared nodes are copied, and what is no JSON is refused. */
function converter(sizeMax: number): (value: unknown, depth: number) => Json {
  let nodes = 0
  let size = 0
  const count = (value: unknown) => {
    size += 1 + (value instanceof Spelled ? value.source : typeof value === 'string' ? value : '').length
  }
  return function convert(value: unknown, depth: number): Json {
    count(value)
    if (++nodes > NODES_MAX || size > sizeMax || depth > DEPTH_MAX) {
      throw new JsonError('error converting YAML to JSON: yaml: document contains excessive aliasing')
    }
    if (Array.isArray(value)) return value.map((element) => convert(element, depth + 1))
    if (value instanceof Map) {
      const members = new Map<string, unknown>()
      for (const [key, member] of value) {
        count(key)
        members.set(keyText(key), member)
      }
      const keys = [...members.keys()].sort(bytewise)
      return new Map(keys.map((key) => [key, convert(members.get(key), depth + 1)]))
    }
    return value as Json
  }
}

function keyText(key: unknown): string {
  if (key instanceof Spelled) return key.source
  if (typeof key === 'string' || typeof key === 'number' || typeof key === 'boolean') return String(key)
  throw new JsonError('error converting YAML to JSON: unsupported map key')
}
