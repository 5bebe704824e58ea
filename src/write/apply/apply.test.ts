import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Json, type JsonObject, parseJson, printJson } from '../../kube/json/json.ts'
import type { Schema } from '../../kube/schema/schema.ts'
import { ApplyConflict, applyConfiguration, updateOwners } from './apply.ts'
import { TypeFault } from './faults.ts'
import { FieldSet } from './fieldset.ts'
import { deducedType, type FieldType } from './fieldtype.ts'
import type { Owners, Versions } from './owner.ts'
import { pathOf, printPath } from './pathelement.ts'
import { FieldTypes } from './typesfrom.ts'

const text: Schema = { type: 'string' }
const item: Schema = { type: 'object', properties: { k: text, v: text, w: text } }
const port: Schema = {
  type: 'object',
  properties: { n: { type: 'integer' }, p: { type: 'string', default: 'TCP' }, v: text },
}
const types = new FieldTypes({})
const properties: Readonly<Record<string, Schema>> = {
  a: text,
  b: text,
  struct: { type: 'object', properties: { a: text, b: text } },
  map: { type: 'object', additionalProperties: text },
  list: { type: 'array', items: text },
  set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
  items: { type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] },
  ports: { type: 'array', items: port, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['n', 'p'] },
  status: { type: 'object', properties: { a: text } },
}
const typeV1 = types.custom({ type: 'object', properties })
const typeV2 = types.custom({ type: 'object', properties: { ...properties, c: text } })

/** One object and its owners. In version v2 the field `a` is called `c`. */
class World {
  live = parseJson('{"apiVersion":"v1","kind":"T"}') as JsonObject
  owners: Owners = new Map()
  typeOf: Record<string, FieldType | undefined> = { v1: typeV1, v2: typeV2 }
  filter: Versions['filter']

  apply(owner: string, config: string, { force = false, version = 'v1' } = {}): this {
    const tree = parseJson(`{"apiVersion":"${version}","kind":"T",${config.slice(1)}`.replace(',}', '}')) as JsonObject
    const applied = applyConfiguration({ ...this.#given(owner, version), config: tree, force })
    if (applied.tree !== undefined) this.live = converted(applied.tree, version, 'v1')
    this.#keep(applied.owners)
    return this
  }

  update(owner: string, next: string): this {
    const tree = parseJson(`{"apiVersion":"v1","kind":"T",${next.slice(1)}`.replace(',}', '}')) as JsonObject
    this.#keep(updateOwners({ ...this.#given(owner, 'v1'), next: tree }))
    this.live = tree
    return this
  }

  #given(owner: string, apiVersion: string) {
    const versions: Versions = {
      typeOf: (version) => this.typeOf[version],
      convert: converted,
      ...(this.filter === undefined ? {} : { filter: this.filter }),
    }
    return { live: converted(this.live, 'v1', apiVersion), owners: this.owners, owner, apiVersion, versions }
  }

  #keep(owners: Owners): void {
    const head = FieldSet.of(pathOf('apiVersion'), pathOf('kind'))
    this.owners = new Map([...owners].map(([key, owned]) => [key, { ...owned, set: owned.set.difference(head) }]))
  }

  get object(): string {
    return printJson(new Map([...this.live].filter(([key]) => key !== 'apiVersion' && key !== 'kind')))
  }

  /** `A: .a .b; B: .b` */
  get owned(): string {
    const lines = [...this.owners].filter(([, { set }]) => !set.isEmpty)
    return lines
      .map(([key, { set }]) => `${key}: ${[...set.paths()].map(printPath).join(' ')}`)
      .sort()
      .join('; ')
  }
}

function converted(tree: JsonObject, from: string, to: string): JsonObject {
  if (from === to) return tree
  const [was, is] = to === 'v2' ? ['a', 'c'] : ['c', 'a']
  return new Map(
    [...tree].map(([key, value]): [string, Json] => [key === was ? is : key, key === 'apiVersion' ? to : value]),
  )
}

function conflicts(write: () => unknown): string {
  try {
    write()
  } catch (error) {
    if (!(error instanceof ApplyConflict)) throw error
    return error.conflicts.map(({ owner, path }) => `${owner}: ${printPath(path)}`).join('; ')
  }
  return 'none'
}

const cases: Readonly<Record<string, readonly [world: () => World, object: string, owned: string]>> = {
  'what is applied is owned': [
    () => new World().apply('A', '{"a":"1","map":{"x":"1"}}'),
    '{"a":"1","map":{"x":"1"}}',
    'A: .a .map.x',
  ],
  'the same value can be shared': [
    () => new World().apply('A', '{"a":"1"}').apply('B', '{"a":"1"}'),
    '{"a":"1"}',
    'A: .a; B: .a',
  ],
  'force takes a field from its owner': [
    () => new World().apply('A', '{"a":"1","b":"1"}').apply('B', '{"a":"2"}', { force: true }),
    '{"a":"2","b":"1"}',
    'A: .b; B: .a',
  ],
  'an owner of nothing is gone': [
    () => new World().apply('A', '{"a":"1"}').apply('B', '{"a":"2"}', { force: true }),
    '{"a":"2"}',
    'B: .a',
  ],
  'what is not applied any more goes': [
    () => new World().apply('A', '{"a":"1","b":"1","struct":{"a":"1"}}').apply('A', '{"b":"1"}'),
    '{"b":"1"}',
    'A: .b',
  ],
  'what somebody else applies too stays': [
    () => new World().apply('A', '{"a":"1","b":"1"}').apply('B', '{"a":"1"}').apply('A', '{"b":"1"}'),
    '{"a":"1","b":"1"}',
    'A: .b; B: .a',
  ],
  'what somebody else has changed stays': [
    () => new World().apply('A', '{"a":"1","b":"1"}').update('U', '{"a":"2","b":"1"}').apply('A', '{"b":"1"}'),
    '{"a":"2","b":"1"}',
    'A: .b; U: .a',
  ],
  'an update that changes nothing owns nothing': [
    () => new World().apply('A', '{"a":"1"}').update('U', '{"a":"1"}'),
    '{"a":"1"}',
    'A: .a',
  ],
  'an update owns what it adds, containers too': [
    () => new World().update('U', '{"map":{"x":"1"},"items":[{"k":"a","v":"1"}]}'),
    '{"map":{"x":"1"},"items":[{"k":"a","v":"1"}]}',
    'U: .items .map .items[k="a"] .items[k="a"].k .items[k="a"].v .map.x',
  ],
  'an update takes away what it removes': [
    () => new World().apply('A', '{"a":"1","b":"1","map":{"x":"1"}}').update('U', '{"b":"1"}'),
    '{"b":"1"}',
    'A: .b',
  ],
  'an item that is not applied any more goes': [
    () => new World().apply('A', '{"items":[{"k":"a","v":"1"},{"k":"b"}]}').apply('A', '{"items":[{"k":"b"}]}'),
    '{"items":[{"k":"b"}]}',
    'A: .items[k="b"] .items[k="b"].k',
  ],
  'an item stays with what others have in it': [
    () =>
      new World()
        .apply('A', '{"items":[{"k":"a","v":"1"}]}')
        .apply('B', '{"items":[{"k":"a","w":"2"}]}')
        .apply('A', '{}'),
    '{"items":[{"k":"a","w":"2"}]}',
    'B: .items[k="a"] .items[k="a"].k .items[k="a"].w',
  ],
  'an item goes with what an update put into it, and leaves a list that is null': [
    () =>
      new World()
        .apply('A', '{"items":[{"k":"a","v":"1"}]}')
        .update('U', '{"items":[{"k":"a","v":"1","w":"2"}]}')
        .apply('A', '{}'),
    '{"items":null}',
    '',
  ],
  'two appliers share a set': [
    () => new World().apply('A', '{"set":["a","b"]}').apply('B', '{"set":["c","b"]}').apply('A', '{"set":["a"]}'),
    '{"set":["a","c","b"]}',
    'A: .set[="a"]; B: .set[="b"] .set[="c"]',
  ],
  'an absent key is its default': [
    () =>
      new World()
        .apply('A', '{"ports":[{"n":1,"v":"x"}]}')
        .apply('B', '{"ports":[{"n":1,"p":"TCP"},{"n":1,"p":"UDP"}]}'),
    '{"ports":[{"n":1,"v":"x","p":"TCP"},{"n":1,"p":"UDP"}]}',
    'A: .ports[n=1,p="TCP"] .ports[n=1,p="TCP"].n .ports[n=1,p="TCP"].v; B: .ports[n=1,p="TCP"] .ports[n=1,p="UDP"] .ports[n=1,p="TCP"].n .ports[n=1,p="TCP"].p .ports[n=1,p="UDP"].n .ports[n=1,p="UDP"].p',
  ],
  'an atomic list is one field': [
    () => new World().apply('A', '{"list":["a"]}').apply('B', '{"list":["b"]}', { force: true }),
    '{"list":["b"]}',
    'B: .list',
  ],
  'an applier changes its version': [
    () => new World().apply('A', '{"a":"1","b":"1"}').apply('A', '{"c":"2"}', { version: 'v2' }),
    '{"a":"2"}',
    'A: .c',
  ],
  'an owner of another version loses what is changed': [
    () => new World().apply('A', '{"c":"1","b":"1"}', { version: 'v2' }).update('U', '{"a":"2","b":"1"}'),
    '{"a":"2","b":"1"}',
    'A: .b; U: .a',
  ],
}
for (const [title, [world, object, owned]] of Object.entries(cases)) {
  test(title, () => {
    const made = world()
    assert.deepEqual([made.object, made.owned], [object, owned])
  })
}

test('a field that another owns with another value is a conflict', () => {
  const world = new World()
    .apply('A', '{"a":"1","map":{"x":"1"},"items":[{"k":"i","v":"1"}]}')
    .update('U', '{"a":"1","b":"2","map":{"x":"1"},"items":[{"k":"i","v":"1"}]}')
  const config = '{"a":"2","b":"3","map":{"x":"2","y":"1"},"items":[{"k":"i","v":"2","w":"1"}]}'
  assert.equal(
    conflicts(() => world.apply('B', config)),
    'A: .a; A: .items[k="i"].v; A: .map.x; U: .b',
  )
  assert.equal(world.owned, 'A: .a .items[k="i"] .items[k="i"].k .items[k="i"].v .map.x; U: .b')
})

test('a conflict is seen in the version of its owner', () => {
  const world = new World().apply('A', '{"c":"1"}', { version: 'v2' })
  assert.equal(
    conflicts(() => world.apply('B', '{"a":"2"}')),
    'A: .c',
  )
})

test('nothing changed: no object, and owners are still those of the configuration', () => {
  const world = new World().apply('A', '{"a":"1"}')
  const before = world.live
  world.apply('B', '{"a":"1"}')
  assert.equal(world.live, before)
  assert.equal(world.owned, 'A: .a; B: .a')
})

test('what nobody owns stays where something else keeps its place', () => {
  const world = new World().apply('A', '{"map":{"x":"1"}}').apply('B', '{"map":{"y":"1"}}')
  world.update('U', '{"map":{"x":"1","y":"1","z":"1"}}')
  world.owners = new Map([...world.owners].filter(([key]) => key !== 'U'))
  assert.equal(world.apply('A', '{}').object, '{"map":{"y":"1","z":"1"}}')
})

test('owners in a version that is gone own nothing', () => {
  const world = new World().apply('A', '{"c":"1"}', { version: 'v2' })
  world.typeOf.v2 = undefined
  world.apply('B', '{"a":"2"}')
  assert.equal(world.owned, 'B: .a')
})

test('fields that a write does not touch are neither owned nor taken', () => {
  const world = new World().apply('A', '{"status":{"a":"1"}}')
  world.filter = (fields) => fields.without(FieldSet.of(pathOf('status')))
  world.apply('B', '{"a":"1","status":{"a":"2"}}')
  assert.equal(world.owned, 'A: .status.a; B: .a')
  world.update('U', '{"a":"2","status":{"a":"3"}}')
  assert.equal(world.owned, 'A: .status.a; U: .a')
})

test('what became atomic is owned as a whole by all who had a part', () => {
  const world = new World().apply('A', '{"map":{"x":"1"}}').apply('B', '{"map":{"y":"1"}}')
  const map: Schema = { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' }
  world.typeOf.v1 = types.custom({ type: 'object', properties: { ...properties, map } })
  assert.equal(
    conflicts(() => world.apply('A', '{"map":{"x":"1"}}')),
    'B: .map',
  )
  assert.equal(world.apply('C', '{"map":{"x":"1","y":"1"}}').owned, 'A: .map; B: .map; C: .map')
})

test('without a schema lists are whole and members separate', () => {
  const world = new World()
  world.typeOf = { v1: deducedType }
  world.apply('A', '{"spec":{"x":{"y":1},"l":[1,2]}}').apply('B', '{"spec":{"x":{"z":1}}}')
  assert.equal(world.object, '{"spec":{"x":{"y":1,"z":1},"l":[1,2]}}')
  assert.equal(
    conflicts(() => world.apply('B', '{"spec":{"l":[1]}}')),
    'A: .spec.l',
  )
})

test('a configuration that is not of its type is refused before anything else', () => {
  assert.throws(
    () => new World().apply('A', '{"nope":1}'),
    new TypeFault([{ path: '.nope', message: 'field not declared in schema' }]),
  )
  assert.throws(() => new World().apply('A', '{"items":[{"k":"a"},{"k":"a"}]}'), TypeFault)
})

/** Empty lists and maps are left out: they come and go with every other apply, at the real one too. */
test('applying a configuration again changes nothing, whatever came before', () => {
  const letter = fc.constantFrom('1', '2')
  const config = fc
    .record(
      {
        a: letter,
        b: letter,
        map: fc.dictionary(fc.constantFrom('x', 'y'), letter, { minKeys: 1 }),
        list: fc.array(letter, { maxLength: 2 }),
        set: fc.uniqueArray(fc.constantFrom('p', 'q', 'r'), { minLength: 1 }),
        items: fc.uniqueArray(fc.record({ k: fc.constantFrom('i', 'j'), v: letter }), {
          selector: ({ k }) => k,
          minLength: 1,
        }),
      },
      { requiredKeys: [] },
    )
    .map((plain) => JSON.stringify(plain))
  const write = fc.record({ owner: fc.constantFrom('A', 'B', 'U'), config })
  fc.assert(
    fc.property(fc.array(write, { maxLength: 5 }), config, (before, last) => {
      const world = new World()
      for (const { owner, config } of before) {
        if (owner === 'U') world.update(owner, config)
        else world.apply(owner, config, { force: true })
      }
      world.apply('A', last, { force: true })
      const [live, owned] = [world.live, world.owned]
      world.apply('A', last)
      assert.equal(world.live, live)
      assert.equal(world.owned, owned)
    }),
  )
})

test('what is told of conflicts and faults has an end, however long the paths are', () => {
  const long = 'x'.repeat(300_000)
  const config = (value: string) => {
    const keys = Array.from({ length: 200 }, (_, index) => `"${index}":${value}`)
    return `{"spec":{"${long}":{${keys.join(',')}}}}`
  }
  const world = new World()
  world.typeOf = { v1: deducedType }
  world.apply('A', config('1'))
  assert.throws(
    () => world.apply('B', config('2')),
    (error) => error instanceof ApplyConflict && error.conflicts.length === 4,
  )
  const values: Schema = { type: 'object', additionalProperties: { type: 'object', additionalProperties: text } }
  world.typeOf.v1 = types.custom({ type: 'object', properties: { spec: values } })
  assert.throws(
    () => world.apply('B', config('2')),
    (error) => error instanceof TypeFault && error.message.length < 2 ** 20,
  )
})

test('a deep value is walked in one pass', () => {
  const deep = (leaf: string) => '{"a":'.repeat(900) + leaf + '}'.repeat(900)
  const leaves = (value: number) => `{${Array.from({ length: 2_000 }, (_, index) => `"k${index}":${value}`).join(',')}}`
  const world = new World()
  world.typeOf = { v1: deducedType }
  world
    .apply('A', deep(leaves(1)))
    .apply('A', deep(leaves(2)))
    .apply('A', deep('{"k1":2}'))
  assert.equal(world.object, deep('{"k1":2}'))
})
