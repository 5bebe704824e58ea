/** What managers contest in a Gadget: every list type and map type, and what is wrong, empty or null. */
import { listOf, looseMetadata, mapOf, one, type Pool, some, values } from './choices.ts'

export const gadgetPool: Pool = [
  ...looseMetadata,
  ['spec.text', one(...values)],
  ['spec.count', one(1, 2)],
  ['spec.amount', one(1.5, 2)],
  ['spec.flag', one(true, false)],
  ['spec.either', one(80, '80', 'http')],
  ['spec.note', one('1', '2', null)],
  ['spec.level', one(3, 4)],
  ['spec.replicas', one(1, 2)],
  ['spec.tags', some('a', 'b', 'c')],
  // Many, so that the order of what is joined shows.
  ['spec.tags', some('h', 'b', 'f', 'c', 'd', 'a', 'e', 'g')],
  ['spec.numbers', some(1, 2, 3)],
  ['spec.words', some('a', 'b')],
  ['spec.plain', some('a', 'b')],
  [
    'spec.ports',
    listOf([{ port: 80 }, { port: 80, protocol: 'UDP' }, { port: 81, protocol: 'TCP' }], { name: one(...values) }),
  ],
  [
    'spec.ports',
    listOf([{ port: 80, protocol: 'TCP' }, { port: 81 }], { name: one(...values), modes: some('m', 'n') }),
  ],
  [
    'spec.parts',
    listOf([{ name: 'p' }, { name: 'q' }, { name: 'r' }], { value: one(...values), tags: some('a', 'b') }),
  ],
  [
    'spec.parts',
    listOf(
      ['s', 'q', 't', 'p', 'u', 'r'].map((name) => ({ name })),
      { size: mapOf(['a', 'b'], [1, 2]) },
    ),
  ],
  ['spec.pairs', listOf([{ a: '1' }, { a: '2' }], { b: one(...values) })],
  ['spec.rows', one([['a'], ['b']], [['a', 'b']], [[]])],
  ['spec.labels', mapOf(['a', 'b', 'c'], values)],
  ['spec.table', (random) => mapOf(['r', 's'], [mapOf(['x', 'y'], [1, 2])(random)])(random)],
  ['spec.sealed', mapOf(['a', 'b'], values)],
  ['spec.unit', mapOf(['a', 'b'], values)],
  ['spec.nest', mapOf(['a', 'b'], values)],
  ['spec.nest', (random) => ({ deep: mapOf(['c', 'd'], values)(random) })],
  ['spec.free', mapOf<unknown>(['a', 'b'], ['1', 2, ['x'], { deep: 'y' }, true, null])],
  ['spec.half', (random) => ({ ...mapOf(['known', 'unknown'], values)(random), list: random.some(['a', 'b']) })],
  ['spec.template', one({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: '1' } })],
]

/** Empty, null, of another type, unknown, twice. */
export const gadgetMistakes: Pool = [
  ...(['tags', 'words', 'ports', 'parts', 'pairs'] as const).map((name) => [`spec.${name}`, one([], null)] as const),
  ...(['labels', 'sealed', 'unit', 'nest', 'free', 'table'] as const).map(
    (name) => [`spec.${name}`, one({}, null)] as const,
  ),
  ['spec.text', one(5, null, {}, ['x'])],
  ['spec.count', one('1', 1.5, null)],
  ['spec.tags', one('a', ['a', 'a'], [1], { a: 1 }, [null])],
  ['spec.numbers', one([1, 1], ['1'])],
  ['spec.ports', one([{ name: 'x' }], [{ port: 80 }, { port: 80, protocol: 'TCP' }], ['x'], [{ port: 'x' }])],
  ['spec.parts', one([{ name: 'p' }, { name: 'p' }], [{ value: '1' }], [{ name: null }])],
  ['spec.nest', one('x', { e: '1' })],
  ['spec.unknown', one('x', { a: 1 })],
  ['spec.table', one({ r: null }, { r: {} }, { r: { x: '1' } })],
  ['spec.labels', one({ a: null }, { a: 1 })],
  ['metadata.labels', one({ a: 1 }, null)],
]
