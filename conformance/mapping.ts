/**
 * What differs between two servers by nature, made equal: uids, times, versions, generated names and continue tokens
 * become symbols by order of appearance, so that "the same object, changed once" still reads the same on both sides.
 */

/** Beside the fields of a manager stands their text: these names have one order. */
export const inOrder = 'fieldsV1 in order'

type Json = { [key: string]: unknown }

/** Times that a server makes up are of today; those that a case brings along are of another year. */
const nowSpanMs = 24 * 3600_000

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const moment = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g
const age = /^(<invalid>|(\d+[ydhms])+)$/
const echoed = /Invalid value: ("\{\\"(?:[^"\\]|\\.)*")/g
/** Numbers of versions inside messages. */
const versionTexts: readonly [RegExp, string][] = [
  [/current: \d+/g, 'current: <version>'],
  [/too old resource version: (\d+) \(\d+\)/g, 'too old resource version: $1 (<version>)'],
  [/resourceVersion: \d+/g, 'resourceVersion: <version>'],
  [/in record \(\d+\)/g, 'in record (<version>)'],
  [/(\\*"resourceVersion\\*":\\*")\d+/g, '$1<version>'],
  // The hash of an OpenAPI document is of its prose too; the address is the server's own.
  [/\?hash=[0-9A-F]{128}/g, '?hash=<hash>'],
  [/^(192\.0\.2\.1|127\.0\.0\.1):\d+$/g, '<address>'],
]

export type MappingOptions = {
  /** The symbol of a time of today. Without it all of them are `<time>`, and what is ordered by time is ordered anew. */
  readonly moment?: (ms: number) => string
}

/** The symbols of one server in one group. */
export class Mapping {
  readonly #uids = new Map<string, string>()
  readonly #versions = new Map<string, Map<string, string>>()
  readonly #names = new Map<string, string>()
  readonly #nowMs: number
  readonly #options: MappingOptions
  /** What was taken away, by the name it has in the list of differences. */
  readonly removed = new Set<string>()

  constructor(nowMs: number, options: MappingOptions = {}) {
    this.#nowMs = nowMs
    this.#options = options
  }

  text(text: string): string {
    let mapped = text.replaceAll(echoed, (whole, quoted: string) => this.#echo(quoted) ?? whole)
    mapped = mapped.replaceAll(uuid, (found) => this.#uid(found))
    mapped = mapped.replaceAll(moment, (found, fraction) => {
      if (Math.abs(Date.parse(found) - this.#nowMs) > nowSpanMs) return found
      return fraction === undefined
        ? (this.#options.moment?.(Date.parse(found)) ?? '<time>')
        : `<time.${fraction.length - 1}>`
    })
    for (const [pattern, replacement] of versionTexts) mapped = mapped.replaceAll(pattern, replacement)
    for (const [name, symbol] of this.#names) mapped = mapped.replaceAll(name, symbol)
    return mapped
  }

  /** A refused patch is told with the whole object in it: what counts is the object, not the order of its keys. */
  #echo(quoted: string): string | undefined {
    try {
      return `Invalid value: ${JSON.stringify(sortedKeys(this.json(JSON.parse(JSON.parse(quoted)))))}`
    } catch {
      return undefined
    }
  }

  json(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) return value.map((inner) => this.json(inner))
    if (typeof value !== 'object' || value === null) return value
    const from = inStableOrder(value as Json)
    this.#learnName(from)
    const mapped: Json = {}
    for (const [key, inner] of Object.entries(from)) {
      if (key === 'metadata' && isObject(inner)) mapped[key] = this.#metadata(inner, from)
      else if (key === 'cells' && Array.isArray(inner)) mapped[key] = inner.map((cell) => this.#cell(cell))
      else mapped[this.text(key)] = this.json(inner)
    }
    return mapped
  }

  #metadata(metadata: Json, holder: Json): Json {
    const mapped: Json = {}
    const { uid } = metadata
    if (typeof uid === 'string') this.#learnUid(uid, metadata)
    const listed = 'items' in holder || 'rows' in holder || String(holder.kind).endsWith('List')
    for (const [key, inner] of Object.entries(metadata)) {
      if (key === 'managedFields') mapped[key] = this.#managed(inner)
      else if (key === 'continue' && inner !== '') mapped[key] = '<continue>'
      else if (key === 'resourceVersion' && typeof inner === 'string')
        mapped[key] = listed || typeof uid !== 'string' ? '<version>' : this.#version(uid, inner)
      else mapped[key] = this.json(inner)
    }
    return mapped
  }

  /** By time, and within a second by name: where times are not told apart, by name alone. */
  #managed(entries: unknown): unknown {
    if (!Array.isArray(entries)) return this.json(entries)
    const mapped = entries.map((entry: Json) => {
      const fields = this.json(entry.fieldsV1)
      return { ...(this.json(entry) as Json), fieldsV1: fields, [inOrder]: JSON.stringify(fields) }
    })
    const named = (entry: Json) => JSON.stringify([entry.operation, entry.manager, entry.subresource, entry.apiVersion])
    return this.#options.moment === undefined ? mapped.toSorted((a, b) => (named(a) < named(b) ? -1 : 1)) : mapped
  }

  #cell(cell: unknown): unknown {
    return typeof cell === 'string' && age.test(cell) ? '<age>' : this.json(cell)
  }

  /** Before the object's strings are mapped, as its name comes again in messages and links. */
  #learnName(object: Json): void {
    if (!isObject(object.metadata)) return
    const { generateName, name } = object.metadata
    if (typeof generateName !== 'string' || typeof name !== 'string' || this.#names.has(name)) return
    const suffix = name.slice(generateName.length)
    if (!name.startsWith(generateName) || !/^[bcdfghjklmnpqrstvwxz2456789]{5}$/.test(suffix)) return
    this.#names.set(name, `${generateName}<suffix${this.#names.size + 1}>`)
  }

  /** By the name of its object, so that one object more on one side does not rename all that follow. */
  #learnUid(uid: string, { namespace = '', name }: Json): void {
    if (this.#uids.has(uid)) return
    const owner = this.text(`${namespace}/${name}`)
    const before = [...this.#uids.values()].filter((symbol) => symbol.startsWith(`<uid ${owner} `)).length
    this.#uids.set(uid, `<uid ${owner} ${before + 1}>`)
  }

  #uid(uid: string): string {
    let symbol = this.#uids.get(uid)
    if (symbol === undefined) {
      symbol = `<uid ${[...this.#uids.values()].filter((one) => /^<uid \d/.test(one)).length + 1}>`
      this.#uids.set(uid, symbol)
    }
    return symbol
  }

  #version(uid: string, version: string): string {
    let versions = this.#versions.get(uid)
    if (versions === undefined) {
      versions = new Map()
      this.#versions.set(uid, versions)
    }
    let symbol = versions.get(version)
    if (symbol === undefined) {
      symbol = `<version${versions.size + 1}>`
      versions.set(version, symbol)
    }
    return symbol
  }
}

function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sortedKeys(value[key])]),
  )
}

/** An applied object of the wrong types: one line each. */
const typedErrors = /(: errors:\n)((?: {2}.*\n?)+)/

function inLineOrder(lines: string): string {
  return lines.split('\n').toSorted().join('\n')
}

type Cause = { readonly reason?: string; readonly field: string; readonly message: string }

/**
 * A custom resource's schema is checked field by field in the order of a Go map: any order, another each time. The managers
 * that an apply conflicts with are the keys of such a map, too.
 */
function inStableOrder(object: Json): Json {
  if (object.kind !== 'Status') return object
  const { details } = object
  const message = String(object.message).replace(
    typedErrors,
    (_, start: string, lines: string) => start + inLineOrder(lines),
  )
  if (!isObject(details)) return { ...object, ...('message' in object ? { message } : {}) }
  const causes = details.causes as Cause[] | undefined
  if (causes === undefined || causes.length < 2) return object
  if (causes.every(({ reason }) => reason === 'FieldManagerConflict')) {
    const byManager = causes.toSorted((a, b) => (a.message === b.message ? 0 : a.message < b.message ? -1 : 1))
    return { ...object, details: { ...details, causes: byManager } }
  }
  if (!String(details.group).endsWith('.example.com')) return object
  const sorted = causes.toSorted((a, b) => (`${a.field} ${a.message}` < `${b.field} ${b.message}` ? -1 : 1))
  const texts = (list: readonly Cause[]) => list.map((cause) => `${cause.field}: ${cause.message}`).join(', ')
  return {
    ...object,
    message: message.replace(texts(causes), () => texts(sorted)),
    details: { ...details, causes: sorted },
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
