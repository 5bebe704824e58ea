import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type JsonObject } from '../json/json.ts'
import { checkScaled } from './scaled.ts'

const paths = { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n', labelSelectorPath: '.status.l' }

// Texts as a real kube-apiserver 1.36 gave them.
const cases: Array<[object, boolean, string[]]> = [
  [{ spec: { n: -1 } }, false, ['.spec.n: Invalid value: -1: should be a non-negative integer']],
  [
    { spec: { n: 3000000000 }, status: { n: -2 } },
    false,
    [
      '.spec.n: Invalid value: 3000000000: should be less than or equal to 2147483647',
      '.status.n: Invalid value: -2: should be a non-negative integer',
    ],
  ],
  [
    { spec: { n: 'x' }, status: { l: 5 } },
    false,
    [
      '.spec.n: Invalid value: 0: .spec.n accessor error: x is of the type string, expected int64',
      '.status.l: Invalid value: "": .status.l accessor error: 5 is of the type int64, expected string',
    ],
  ],
  [{ spec: { n: -1 }, status: { n: 1 } }, true, []],
  [
    { spec: 'x', status: null },
    false,
    ['.spec.n: Invalid value: 0: .spec.n accessor error: x is of the type string, expected map[string]interface{}'],
  ],
  [{}, false, []],
]

for (const [object, status, expected] of cases) {
  test(`values for scale: ${JSON.stringify(object)}`, () => {
    const found = checkScaled(fromPlain(object) as JsonObject, paths, status)
    assert.deepEqual(
      found.map((error) => `${error.field}: ${error.text}`),
      expected,
    )
  })
}
