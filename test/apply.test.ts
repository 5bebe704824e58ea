/** The parts of the proof of server-side apply that need no server: sequences from seeds, and what makes a failing one small. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCases } from '../conformance/apply/cases.ts'
import { generate } from '../conformance/apply/generate.ts'
import type { Played } from '../conformance/apply/lockstep.ts'
import type { Scenario } from '../conformance/apply/scenario.ts'
import { shrink } from '../conformance/apply/shrink.ts'
import { subjects } from '../conformance/apply/subjects.ts'
import { differences } from '../conformance/compare.ts'
import { Mapping } from '../conformance/mapping.ts'

const answer = { status: 200, headers: {}, body: '' }

/** Differs in the first step that `wrong` finds. */
function played(scenario: Scenario, wrong: (body: string) => boolean): Played {
  const at = scenario.steps.findIndex(({ body, edit }) => wrong(JSON.stringify(body ?? edit ?? null)))
  const count = at < 0 ? scenario.steps.length : at + 1
  const open = [{ field: 'body.spec', real: 1, ours: 2 }]
  const steps = Array.from({ length: count }, (_, step) => ({
    open: step === at ? open : [],
    answers: [answer, answer] as const,
  }))
  return { scenario, steps }
}

test('a seed is one sequence, and all kinds and verbs come up', () => {
  const sequences = Array.from({ length: 500 }, (_, at) => generate(at + 1))
  assert.deepEqual(generate(7), generate(7))
  assert.notDeepEqual(generate(7).steps, generate(8).steps)
  const kinds = new Set(sequences.map(({ name }) => name.split(' ')[2]))
  assert.equal(kinds.size, subjects.length)
  const steps = sequences.flatMap((one) => one.steps)
  assert.deepEqual(new Set(steps.map(({ method }) => method)), new Set(['POST', 'PUT', 'PATCH', 'DELETE']))
  const forms = new Set(steps.filter(({ method }) => method === 'PATCH').map(({ headers }) => headers['content-type']))
  assert.equal(forms.size, 4)
  assert.ok(steps.some(({ path }) => path.includes('force=true')))
  assert.ok(steps.some(({ path }) => path.includes('/status')))
})

test('a failing sequence shrinks to the step and the field that matter', async () => {
  const scenario = Array.from({ length: 400 }, (_, at) => generate(at + 1)).find(
    ({ steps }) => steps.length > 5 && JSON.stringify(steps.at(-1)?.body ?? null).includes('"tags"'),
  ) as Scenario
  const wrong = (body: string) => body.includes('"tags"')
  const least = await shrink(played(scenario, wrong), async (all) => all.map((one) => played(one, wrong)))
  assert.equal(least.scenario.steps.length, 1)
  const text = JSON.stringify(least.scenario.steps[0]?.body ?? least.scenario.steps[0]?.edit)
  assert.match(text, /^\{("apiVersion":"[^"]+","kind":"Gadget","metadata":\{"name":"<n>"\},)?"spec":\{.*"tags":\[\]/)
})

test('owners are compared with the order of their fields, and with the step that set their time', () => {
  const second = Date.parse('2026-05-06T07:08:09Z')
  const moment = (ms: number) => (ms < second ? '<step 1>' : '<step 2>')
  const seen = (fieldsV1: object, time = '2026-05-06T07:08:08Z') =>
    new Mapping(second, { moment }).json({ metadata: { managedFields: [{ manager: 'a', time, fieldsV1 }] } })
  const real = seen({ 'f:a': {}, 'f:b': {} })
  assert.deepEqual(differences(real, seen({ 'f:a': {}, 'f:b': {} }, '2026-05-06T07:08:07Z')), [])
  assert.deepEqual(
    [seen({ 'f:b': {}, 'f:a': {} }), seen({ 'f:a': {}, 'f:b': {} }, '2026-05-06T07:08:10Z')].map(
      (ours) => differences(real, ours)[0]?.field,
    ),
    ['metadata.managedFields[0].fieldsV1 in order', 'metadata.managedFields[0].time'],
  )
})

test('the named cases can be read, and are at least as many as promised', async () => {
  const cases = await readCases()
  assert.ok(cases.length >= 120, `${cases.length} cases`)
  assert.ok(cases.every(({ steps }) => steps.length > 0))
})
