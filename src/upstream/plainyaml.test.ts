import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FAILSAFE_SCHEMA, load } from 'js-yaml'
import { readPlainYaml } from './plainyaml.ts'

const kubeconfig = `# Of a cluster.
apiVersion: v1
kind: Config
preferences: {}
clusters:
- name: kubernetes
  cluster:
    certificate-authority-data: Zm9v/+Y=
    server: https://10.0.0.1:6443
users:
  - name: "system:node:edge-1"
    user:
      client-key: '/var/lib/key.pem'
contexts:
- context:
    cluster: kubernetes
    user: system:node:edge-1
  name: a
current-context: a
`

test('a kubeconfig is read as the parser reads it, as YAML and as JSON', () => {
  const theirs = load(kubeconfig, { schema: FAILSAFE_SCHEMA })
  assert.deepEqual(readPlainYaml(kubeconfig), theirs)
  assert.deepEqual(readPlainYaml(`${JSON.stringify(theirs, null, 2)}\n`), theirs)
  assert.deepEqual(readPlainYaml('{"insecure-skip-tls-verify": true}'), { 'insecure-skip-tls-verify': 'true' })
})

const unsure: readonly [what: string, source: string][] = [
  ['nothing', ''],
  ['a key that stands twice', 'a: b\na: c\n'],
  ['a key that stands twice in JSON', '{"a": "b", "a": "c"}'],
  ['a number in JSON, whose spelling counts', '{"a": 1.0}'],
  ['a key without a value', 'a:\nb: c\n'],
  ['a text of several lines', 'a: |\n  b\n'],
  ['a comment behind a value', 'a: b # c\n'],
  ['an anchor', 'a: &b c\n'],
  ['an escape', 'a: "b\\n"\n'],
  ['a tab', 'a:\n\tb: c\n'],
  ['a value that goes on in the next line', 'a: b\n  c\n'],
  ['several documents', '---\na: b\n---\nc: d\n'],
  ['what is no map of its own line', 'a: b: c\n'],
]
for (const [what, source] of unsure) {
  test(`${what} is left to the parser`, () => assert.equal(readPlainYaml(source), undefined))
}

test('whatever is read is what the parser reads', () => {
  const word = fc.constantFrom(
    'a',
    'name',
    'b: c',
    'https://1.2.3.4:6443',
    '"x y"',
    "'z'",
    '{}',
    '[]',
    '12',
    '~',
    'null',
    '|',
  )
  const blank = fc.constantFrom(
    '\n',
    '\n  ',
    '\n    ',
    '\n- ',
    '\n  - ',
    ': ',
    ':\n',
    ':\n- ',
    ':\n  ',
    ' ',
    ' # c',
    '#',
    '"',
    ',',
    '\n\n',
  )
  const source = fc.array(fc.oneof(word, blank), { maxLength: 14 }).map((pieces) => pieces.join(''))
  let read = 0
  fc.assert(
    fc.property(source, (text) => {
      const ours = readPlainYaml(text)
      if (ours === undefined) return
      read++
      assert.deepEqual(ours, load(text, { schema: FAILSAFE_SCHEMA }))
    }),
    { numRuns: 20_000 },
  )
  assert.ok(read > 100, `${read} of them are plain`)
})
