// What a real kube-apiserver 1.36 answered to each of these bodies is recorded beside this file.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { builtinSchemas } from '../builtin.ts'
import { field, fromPlain, type JsonObject, parseJson, text, toPlain } from '../json/json.ts'
import { cannotHandle, checkBuiltin, strictDecoding } from './builtin.ts'
import type { Components } from './gostruct.ts'

type Recorded = {
  title: string
  body: string
  code: number
  message?: string
  required?: string[]
  warnings?: string[]
  fieldValidation?: string
}

const recorded: Recorded[] = JSON.parse(readFileSync(new URL('builtin.recorded.json', import.meta.url), 'utf8'))
const components = builtinSchemas() as Components

function componentOf(object: JsonObject): string {
  const [group, version] = `/${text(object, 'apiVersion')}`.split('/').slice(-2) as [string, string]
  const kind = text(object, 'kind')
  const found = Object.entries(components).find(([, schema]) =>
    (schema as { 'x-kubernetes-group-version-kind'?: object[] })['x-kubernetes-group-version-kind']?.some(
      (of) => JSON.stringify(of) === JSON.stringify({ group, kind, version }),
    ),
  )
  assert.ok(found !== undefined, `no component for ${group} ${version} ${kind}`)
  return found[0]
}

/** Required fields the components do not mark, and complaints the real server words differently than "Required value". */
const NOT_IN_COMPONENTS = new Set([
  'spec.containers[0].image',
  'rules[0].apiGroups',
  'rules[0].resources',
  'spec.jobTemplate.spec.template.spec.restartPolicy',
  'data',
  'spec.controller',
  'spec.accessModes',
  'spec.resources[storage]',
  'metadata.taints[0].effect',
  'spec.group',
  'spec.names.listKind',
  'spec.names.singular',
  'spec.usages',
  'webhooks[0].admissionReviewVersions',
  'webhooks[0].clientConfig',
])

for (const { title, body, code, message, required = [], warnings = [], fieldValidation } of recorded) {
  test(`built-in: ${title}`, () => {
    const duplicates: string[] = []
    const object = parseJson(body, { duplicates: (path) => duplicates.push(`duplicate field "${path}"`) }) as JsonObject
    const kind = text(object, 'kind')
    const verdict = checkBuiltin(object, components, componentOf(object))
    const findings = [...duplicates, ...verdict.unknown.map((path) => `unknown field "${path}"`)]
    if (code === 400 && verdict.undecodable !== undefined) {
      assert.equal(cannotHandle(kind, 'v1', verdict.undecodable).message, message)
      return
    }
    assert.equal(verdict.undecodable, undefined)
    if (fieldValidation === 'Strict') {
      // The real server reports in document order; duplicates come first here.
      const said = (line: string) =>
        line
          .replace(/^.*strict decoding error: /, '')
          .split(', ')
          .sort()
      assert.deepEqual(said(strictDecoding(kind, 'v1', findings).message), said(message ?? ''))
      return
    }
    if (fieldValidation === 'Warn') assert.deepEqual(findings.sort(), warnings.sort())
    const missing = verdict.errors.map((error) => error.field)
    for (const path of required)
      if (!NOT_IN_COMPONENTS.has(path)) assert.ok(missing.includes(path), `${path} is missing`)
    if (code < 300) assert.deepEqual(missing, [])
    if (code === 422) assert.ok(missing.length > 0 || required.every((path) => NOT_IN_COMPONENTS.has(path)))
  })
}

test('built-in: an unknown field stays where the stored object has it', () => {
  const content = { metadata: { name: 'x' }, spec: { future: 1, other: 2, containers: [{ name: 'c', next: true }] } }
  const object = fromPlain(content) as JsonObject
  const old = fromPlain({ spec: { future: 0, containers: [{ name: 'c', next: false }] } }) as JsonObject
  const verdict = checkBuiltin(object, components, 'io.k8s.api.core.v1.Pod', old)
  assert.deepEqual(verdict.unknown, ['spec.future', 'spec.other', 'spec.containers[0].next'])
  assert.equal(field(object, 'spec', 'future'), 1)
  assert.equal(field(object, 'spec', 'other'), undefined)
  assert.deepEqual(toPlain(field(object, 'spec', 'containers') ?? null), [
    Object.assign(Object.create(null), { name: 'c', next: true }),
  ])
})
