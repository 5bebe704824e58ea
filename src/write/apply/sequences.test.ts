/** Sequences of writes with the answers of the library that kube-apiserver uses, recorded: several owners, two versions. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  equalJson,
  field,
  type Json,
  type JsonObject,
  parseJson,
  printJson,
  text,
  toPlain,
} from '../../kube/json/json.ts'
import type { Components } from '../../kube/schema/gostruct.ts'
import { ApplyConflict, applyConfiguration, updateOwners } from './apply.ts'
import { TypeFault } from './faults.ts'
import { FieldSet } from './fieldset.ts'
import { parseFields, printFields } from './fieldsv1.ts'
import type { Owned, Owners, Versions } from './owner.ts'
import { pathOf, printPath } from './pathelement.ts'
import { FieldTypes } from './typesfrom.ts'

const [head = '', ...sequences] = readFileSync(join(import.meta.dirname, 'testdata/sequences.jsonl'), 'utf8')
  .trim()
  .split('\n')
const types = new FieldTypes(toPlain(parseJson(head)) as Components)
const stripped = FieldSet.of(pathOf('apiVersion'), pathOf('kind'))

/** The only difference between the two versions: one field of the spec has another name. */
function renamed(tree: JsonObject, from: string, to: string): JsonObject {
  if (from === to) return tree
  const [was, is] = to === 'v2' ? ['old', 'new'] : ['new', 'old']
  const next = new Map(tree).set('apiVersion', to)
  const spec = tree.get('spec')
  if (spec instanceof Map) next.set('spec', new Map([...spec].map(([key, value]) => [key === was ? is : key, value])))
  return next
}

function versionsOf(ignored: Json | undefined): Versions {
  return {
    typeOf: (version) => (version === 'v1' || version === 'v2' ? types.component(`T${version[1]}`) : undefined),
    convert: renamed,
    filter: (fields, version) => fields.without(parseFields(field(ignored, version))),
  }
}

type Answer = { live?: Json; noop?: boolean; error?: string; conflicts?: string[]; owners?: Json }

class Server {
  #live = parseJson('{"apiVersion":"v1","kind":"T"}') as JsonObject
  #owners: Owners = new Map()
  readonly #versions: Versions

  constructor(versions: Versions) {
    this.#versions = versions
  }

  answer(op: JsonObject): Answer {
    try {
      return this.#write(op)
    } catch (error) {
      if (error instanceof TypeFault) return { error: error.message }
      if (!(error instanceof ApplyConflict)) throw error
      return { conflicts: error.conflicts.map(({ owner, path }) => `${owner} ${printPath(path)}`).sort() }
    }
  }

  #write(op: JsonObject): Answer {
    const [owner, apiVersion] = [text(op, 'manager'), text(op, 'version')]
    const live = renamed(this.#live, text(this.#live, 'apiVersion'), apiVersion)
    const body = op.get('object') as JsonObject
    const given = { live, owners: this.#owners, owner, apiVersion, versions: this.#versions }
    let noop = false
    if (text(op, 'op') === 'apply') {
      const { tree, owners } = applyConfiguration({ ...given, config: body, force: op.get('force') === true })
      this.#live = tree ?? this.#live
      noop = tree === undefined
      this.#keep(owners, owner)
    } else {
      this.#keep(updateOwners({ ...given, next: body }), owner)
      this.#live = body
    }
    return { live: this.#live, ...(noop ? { noop } : {}), owners: this.#printed() }
  }

  /** As the callers do: type and version have no owner, and sets are read back from FieldsV1. */
  #keep(owners: Owners, owner: string): void {
    const read = ([key, owned]: [string, Owned]): [string, Owned] => {
      const set = key === owner ? owned.set.difference(stripped) : owned.set
      return [key, { ...owned, set: parseFields(printFields(set)) }]
    }
    this.#owners = new Map([...owners].map(read).filter(([, { set }]) => !set.isEmpty))
  }

  #printed(): Json {
    const printed = ({ set, apiVersion, applied }: Owned): Json =>
      new Map<string, Json>([
        ['version', apiVersion],
        ['applied', applied],
        ['fields', printFields(set)],
      ])
    return new Map([...this.#owners].map(([key, owned]) => [key, printed(owned)]))
  }
}

for (const [index, line] of sequences.entries()) {
  test(`recorded sequence ${index + 1}`, () => {
    const recorded = parseJson(line)
    const server = new Server(versionsOf(field(recorded, 'ignore')))
    const ops = field(recorded, 'ops') as JsonObject[]
    const answers = field(recorded, 'answers') as Json[]
    for (const [at, op] of ops.entries()) {
      const mine = server.answer(op)
      const wanted = answers[at] as JsonObject
      const where = `write ${at + 1}: ${printJson(op)}`
      assert.equal(mine.error, toPlain(wanted.get('error') ?? null) ?? undefined, where)
      assert.deepEqual(mine.conflicts, toPlain(wanted.get('conflicts') ?? null) ?? undefined, where)
      if (mine.live === undefined) continue
      assert.equal(mine.noop, toPlain(wanted.get('noop') ?? null) ?? undefined, where)
      assert.ok(equalJson(mine.live, wanted.get('live') ?? null), `${where}\n${printJson(mine.live)}`)
      assert.deepEqual(byKey(mine.owners), byKey(wanted.get('owners')), where)
    }
  })
}

/** The order of owners does not matter, that of their fields does. */
function byKey(owners: Json | undefined): string[] {
  return owners instanceof Map ? [...owners].map(([key, owned]) => `${key} ${printJson(owned)}`).sort() : []
}
