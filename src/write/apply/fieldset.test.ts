import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FieldSet } from './fieldset.ts'
import {
  compareElements,
  fieldElement,
  keyElement,
  type Path,
  type PathElement,
  printPath,
  valueElement,
} from './pathelement.ts'

const element: fc.Arbitrary<PathElement> = fc.oneof(
  fc.constantFrom('a', 'b', 'c').map(fieldElement),
  fc.constantFrom('x', 'y').map((name) => keyElement(['name'], [name])),
  fc.constantFrom(1, 2).map(valueElement),
)
const path: fc.Arbitrary<Path> = fc.array(element, { minLength: 1, maxLength: 3 })
const paths = fc.array(path, { maxLength: 12 })
const texts = (list: readonly Path[]) => [...new Set(list.map((one) => one.map((step) => step.text).join('/')))].sort()
const members = (set: FieldSet) => texts([...set.paths()])

test('sets hold exactly the paths they were made of', () => {
  fc.assert(
    fc.property(paths, path, (list, other) => {
      const set = FieldSet.of(...list)
      assert.deepEqual(members(set), texts(list))
      for (const one of list) assert.equal(set.has(one), true)
      assert.equal(set.has(other), texts(list).includes(texts([other])[0] ?? ''))
      assert.equal(set.isEmpty, list.length === 0)
      assert.equal(set.has([]), false)
    }),
  )
})

test('union, intersection and difference are those of the paths', () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const a = FieldSet.of(...left)
      const b = FieldSet.of(...right)
      assert.deepEqual(members(a.union(b)), texts([...left, ...right]))
      assert.deepEqual(
        members(a.intersection(b)),
        texts(left).filter((one) => texts(right).includes(one)),
      )
      assert.deepEqual(
        members(a.difference(b)),
        texts(left).filter((one) => !texts(right).includes(one)),
      )
      assert.equal(a.difference(a).isEmpty, true)
      assert.equal(a.union(b).equals(b.union(a)), true)
      assert.equal(a.difference(b).union(a.intersection(b)).equals(a), true)
      assert.equal(a.equals(b), texts(left).join() === texts(right).join())
    }),
  )
})

test('without takes what lies below along', () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const gone = texts(right)
      const kept = texts(left).filter((one) => !gone.some((other) => one === other || one.startsWith(`${other}/`)))
      assert.deepEqual(members(FieldSet.of(...left).without(FieldSet.of(...right))), kept)
    }),
  )
})

test('no operation changes the sets it was given', () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const a = FieldSet.of(...left)
      const b = FieldSet.of(...right)
      a.union(b)
      a.intersection(b)
      a.difference(b)
      a.without(b)
      assert.deepEqual([members(a), members(b)], [texts(left), texts(right)])
    }),
  )
})

test('members of one depth come before what is below them', () => {
  const [a, b] = [fieldElement('a'), fieldElement('b')]
  const set = FieldSet.of([b, a], [a, b], [b], [a, b, a])
  assert.deepEqual([...set.paths()].map(printPath), ['.b', '.a.b', '.a.b.a', '.b.a'])
})

test('steps are ordered by kind, then by value: numbers, strings, booleans', () => {
  const sorted = [
    fieldElement('B'),
    fieldElement('a'),
    fieldElement('\uff5e'),
    fieldElement('😀'),
    keyElement(['name'], [9]),
    keyElement(['name'], [10]),
    keyElement(['name'], ['a']),
    keyElement(['name', 'port'], ['a', 1]),
    keyElement(['port'], [1]),
    valueElement(-5),
    valueElement(1.5),
    valueElement(10),
    valueElement('10'),
    valueElement(false),
    valueElement(true),
    valueElement([1]),
    valueElement(new Map()),
    valueElement(null),
    { kind: 'index', text: 'i:2', index: 2 },
    { kind: 'index', text: 'i:10', index: 10 },
  ] as const
  for (const [i, a] of sorted.entries()) {
    for (const [j, b] of sorted.entries())
      assert.equal(Math.sign(compareElements(a, b)), Math.sign(i - j), `${a.text} ${b.text}`)
  }
})

test('paths are printed for people', () => {
  const path = [
    fieldElement('spec'),
    keyElement(['a', 'b', 'c'], ['x"y', 80, true]),
    valueElement(1e6),
    valueElement(1.5),
    valueElement(null),
    { kind: 'index', text: 'i:3', index: 3 } as const,
  ]
  assert.equal(printPath(path), '.spec[a="x\\"y",b=80,c=true][=1000000][=1.5][=null][3]')
})
