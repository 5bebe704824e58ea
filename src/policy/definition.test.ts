/** The definition in deploy/ and the hub are of one mind: what one refuses the other finds wrong, and says where. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { forwardingLimits } from '../hub/forwarding/limits.ts'
import { fromPlain, type JsonObject, toPlain } from '../kube/json/json.ts'
import { parseYaml } from '../kube/json/yaml/yaml.ts'
import { checkCustom } from '../kube/schema/check.ts'
import { definitionDefaults, validateDefinition } from '../kube/schema/definition.ts'
import type { Schema } from '../kube/schema/schema.ts'
import { definitionVersions } from '../kube/schema/versions.ts'
import { badSpecs, goodSpecs, pastSpecs } from './policies.test-support.ts'
import { policyResource } from './policy.ts'
import { readPolicy } from './reading.ts'

async function deployed(name: string): Promise<JsonObject> {
  return (await parseYaml(await readFile(new URL(`../../deploy/${name}`, import.meta.url)))) as JsonObject
}

const definition = await deployed('edgepolicy.yaml')
definitionDefaults(definition)
const { schema } = definitionVersions(definition)[0] ?? {}

async function errorsOf(policy: JsonObject): Promise<string[]> {
  assert.ok(schema !== undefined)
  const { errors, warnings } = await checkCustom(policy, schema)
  assert.deepEqual(warnings, [])
  return errors.map(({ field, text }) => `${field}: ${text}`)
}

function policy(spec: object): { readonly text: string; readonly object: JsonObject } {
  const { group, version } = policyResource
  const plain = { apiVersion: `${group}/${version}`, kind: 'EdgePolicy', metadata: { name: 'p' }, spec }
  return { text: JSON.stringify(plain), object: fromPlain(plain) as JsonObject }
}

test('the definition is one, and says what each field is for', () => {
  assert.deepEqual(validateDefinition(definition), [])
  const undescribed: string[] = []
  const visit = (one: Schema, path: string) => {
    const isOfMachinery = path === '.metadata' || path.endsWith('[]')
    if (one.description === undefined && !isOfMachinery) undescribed.push(path)
    for (const [name, inner] of Object.entries(one.properties ?? {})) visit(inner, `${path}.${name}`)
    if (one.items !== undefined) visit(one.items, `${path}[]`)
  }
  assert.ok(schema !== undefined)
  visit(schema, '')
  assert.deepEqual(undescribed, [])
})

for (const [what, spec] of Object.entries(goodSpecs))
  test(`a policy with ${what} is accepted`, async () => {
    const { text, object } = policy(spec)
    assert.deepEqual(await errorsOf(object), [])
    assert.deepEqual(readPolicy(text).faults, [])
  })

for (const [what, [spec, says]] of Object.entries(badSpecs))
  test(`a policy with ${what} is refused, and where it came past that, faulty`, async () => {
    const { text, object } = policy(spec)
    assert.match((await errorsOf(object)).join('\n'), says)
    const { faults, trusts, speakFor, interests } = readPolicy(text)
    assert.notDeepEqual(faults, [])
    for (const fault of faults) assert.match(fault, /^spec\./)
    assert.deepEqual({ trusts, speakFor, interests }, { trusts: false, speakFor: [], interests: [] })
  })

for (const [what, spec] of Object.entries(pastSpecs))
  test(`a policy with ${what} comes past the definition, and is faulty`, async () => {
    const { text, object } = policy(spec)
    assert.deepEqual(await errorsOf(object), [])
    assert.notDeepEqual(readPolicy(text).faults, [])
  })

test('the policy to begin with is accepted, and says what hubs do anyway', async () => {
  const object = await deployed('edgepolicy-default.yaml')
  assert.deepEqual(await errorsOf(object), [])
  const read = readPolicy(JSON.stringify(toPlain(object)))
  assert.deepEqual(read.faults, [])
  const { edgePerSecond, callerPerSecond } = forwardingLimits
  assert.deepEqual(read.rates, { edgePerSecond, callerPerSecond })
})
