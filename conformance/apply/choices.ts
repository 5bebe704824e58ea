/** What fields are made of: few values and few keys, so that managers meet. */
import type { Random } from './random.ts'
import type { Fields } from './scenario.ts'

/** A path in the object, with dots, and a value for it. */
export type Pool = readonly (readonly [path: string, value: (random: Random) => unknown])[]

export const one =
  (...values: readonly unknown[]) =>
  (random: Random): unknown =>
    random.pick(values)
export const some =
  <T>(...values: readonly T[]) =>
  (random: Random): T[] =>
    random.some(values)
/** Some of these keys, each with one of these values. */
export const mapOf =
  <T>(keys: readonly string[], values: readonly T[]) =>
  (random: Random): Record<string, T> =>
    Object.fromEntries(random.some(keys).map((key) => [key, random.pick(values)]))
/** Some elements by key; the rest of each is made anew. */
export const listOf =
  (keys: readonly Fields[], rest: Readonly<Record<string, (random: Random) => unknown>>) =>
  (random: Random): Fields[] =>
    random.some(keys).map((key) => {
      const fields = Object.entries(rest).filter(() => random.chance(0.7))
      return { ...key, ...Object.fromEntries(fields.map(([name, value]) => [name, value(random)])) }
    })

export const values = ['1', '2']
const uid = (digit: string) =>
  `${digit.repeat(8)}-${digit.repeat(4)}-4${digit.repeat(3)}-8${digit.repeat(3)}-${digit.repeat(12)}`
const owners = ['1', '2'].map((at) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `owner${at}`, uid: uid(at) }))

export const metadata: Pool = [
  ['metadata.labels', mapOf(['a', 'b', 'example.com/c'], values)],
  ['metadata.annotations', mapOf(['a', 'example.com/b'], values)],
]
/** Of kinds whose objects may begin anew with anything: the end of an object that has finalizers is part of the game. */
export const looseMetadata: Pool = [
  ...metadata,
  ['metadata.finalizers', some('example.com/a', 'example.com/b', 'example.com/c')],
  ['metadata.ownerReferences', listOf(owners, { controller: one(false), blockOwnerDeletion: one(true, false) })],
]

export const conditions = (...types: readonly string[]) =>
  listOf(
    types.map((type) => ({ type, status: 'True', lastTransitionTime: '2001-02-03T04:05:06Z', reason: 'Because' })),
    { message: one(...values) },
  )
export const withTime = (name: string, made: (random: Random) => Fields[]) => (random: Random) =>
  made(random).map((condition) => ({ ...condition, [name]: '2001-02-03T04:05:06Z' }))
