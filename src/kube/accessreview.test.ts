/** What reviews of access ask: selectors as requests have them, and what of them cannot be used. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAccess } from './accessreview.ts'
import { fromPlain } from './json/json.ts'

const read = (attributes: object) =>
  readAccess(fromPlain({ resourceAttributes: { verb: 'list', resource: 'pods', ...attributes } }))
const ignored = (name: string) => `spec.resourceAttributes.${name} ignored due to parse error`
const partly = (name: string) => `spec.resourceAttributes.${name} partially ignored due to parse error`
const onN1 = { key: 'spec.nodeName', operator: 'In', values: ['n1'] }
const ofApp = { key: 'app', operator: 'In', values: ['b', 'a'] }

const rows: readonly (readonly [rule: string, given: object, labels: string, fields: string, error: string])[] = [
  ['no selectors', {}, '', '', ''],
  [
    'raw ones',
    { fieldSelector: { rawSelector: 'b==2,a!=1' }, labelSelector: { rawSelector: 'x in (b,a)' } },
    'x in (a,b)',
    'a!=1,b=2',
    '',
  ],
  ['a raw one that cannot be read', { fieldSelector: { rawSelector: 'a' } }, '', '', ignored('fieldSelector')],
  [
    'requirements',
    { fieldSelector: { requirements: [onN1] }, labelSelector: { requirements: [ofApp] } },
    'app in (a,b)',
    'spec.nodeName=n1',
    '',
  ],
  [
    'a field of several values',
    { fieldSelector: { requirements: [{ ...onN1, values: ['n1', 'n2'] }] } },
    '',
    '',
    ignored('fieldSelector'),
  ],
  [
    'one of two',
    { fieldSelector: { requirements: [onN1, { key: 'a', operator: 'Exists' }] } },
    '',
    'spec.nodeName=n1',
    partly('fieldSelector'),
  ],
  [
    'a value with a comma',
    { fieldSelector: { requirements: [{ ...onN1, operator: 'NotIn', values: ['a,b'] }] } },
    '',
    'spec.nodeName!=a\\,b',
    '',
  ],
  [
    'labels that are there and not, and an operator that is not known',
    {
      labelSelector: {
        requirements: [
          { key: 'a', operator: 'Exists' },
          { key: 'b', operator: 'DoesNotExist' },
          { key: 'c', operator: 'Like', values: ['x'] },
        ],
      },
    },
    'a,!b',
    '',
    partly('labelSelector'),
  ],
  [
    'labels that must not be, values where none belong, none where one does',
    {
      labelSelector: {
        requirements: [
          { key: 'a', operator: 'NotIn', values: ['x'] },
          { key: 'b', operator: 'Exists', values: ['x'] },
          { key: 'c', operator: 'In', values: [] },
        ],
      },
    },
    'a!=x',
    '',
    partly('labelSelector'),
  ],
  [
    'a label that cannot be one',
    { labelSelector: { requirements: [{ key: 'no key', operator: 'Exists' }] } },
    '',
    '',
    ignored('labelSelector'),
  ],
  [
    'a value that cannot be one',
    { labelSelector: { requirements: [{ key: 'a', operator: 'In', values: ['no value'] }] } },
    '',
    '',
    ignored('labelSelector'),
  ],
  [
    'both wrong',
    { labelSelector: { rawSelector: '!!' }, fieldSelector: { rawSelector: 'x' } },
    '',
    '',
    `${ignored('fieldSelector')}; ${ignored('labelSelector')}`,
  ],
]

for (const [rule, given, labels, fields, error] of rows) {
  test(`a review of access with ${rule}`, () => {
    const asked = read(given)
    assert.deepEqual([asked.labels, asked.fields, asked.evaluationError], [labels, fields, error])
  })
}

test('a review of access asks for all that it names', () => {
  const attributes = {
    ...{ verb: 'get', group: 'apps', version: 'v1', resource: 'deployments' },
    ...{ subresource: 'scale', namespace: 'shop', name: 'web' },
  }
  const asked = readAccess(fromPlain({ resourceAttributes: attributes }))
  assert.deepEqual(asked, { ...attributes, labels: '', fields: '', path: '', evaluationError: '' })
})

test('a review of access to a path asks for nothing else', () => {
  const nonResourceAttributes = { verb: 'get', path: '/metrics' }
  const { verb, path, resource } = readAccess(fromPlain({ resourceAttributes: null, nonResourceAttributes }))
  assert.deepEqual([verb, path, resource], ['get', '/metrics', ''])
})
