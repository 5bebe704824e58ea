/** Single requests that used to hold up the whole process: patterns, rules, lists in every form; another client's wait meanwhile. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Ake } from '../ake.ts'
import { Seat } from '../asking.ts'
import type { Findings } from '../findings.ts'

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const group = 'attacks.example.com'
const things = `/apis/${group}/v1/namespaces/default/things`
const objects = 20_000
const writtenAtOnce = 200
/** The wait of others: what one piece of work may take, and a busy machine; before, a list alone took over a second. */
const waitMsMax = 400
const askEveryMs = 10

export async function attackStalls(ake: Ake, findings: Findings): Promise<void> {
  const seat = new Seat(ake, ake)
  const other = new Seat(ake, ake)
  try {
    await findings.part('a pattern and a rule that never end', () => endless(seat, other, findings))
    await findings.part('lists in every form', () => forms(seat, other, findings))
  } finally {
    seat.close()
    other.close()
  }
}

async function endless(seat: Seat, other: Seat, findings: Findings): Promise<void> {
  const text = { type: 'string', maxLength: 100_000, pattern: '^(a+)+$' }
  const rule = 'self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))'
  const numbers = {
    type: 'array',
    maxItems: 200,
    items: { type: 'integer' },
    'x-kubernetes-validations': [{ rule, message: 'no' }],
  }
  const made = await seat.ask(definitions, { method: 'POST', body: definition({ text, numbers }) })
  findings.equal(made.status, 201, 'the definition is taken')
  await served(seat)
  const attacks = {
    'a pattern that backtracks, over an emoji': { text: `${'a'.repeat(50_000)}😀` },
    'a rule that nests': { numbers: Array.from({ length: 120 }, (_, at) => at) },
  }
  for (const [name, spec] of Object.entries(attacks)) {
    const body = { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'attack' }, spec }
    const { waitMs, status } = await meanwhile(other, () => seat.ask(things, { method: 'POST', body }))
    findings.equal(status, 422, `${name} is refused`)
    findings.check(waitMs < waitMsMax, `[A8] ${name} delays nobody`, `${Math.round(waitMs)} ms`)
  }
}

async function forms(seat: Seat, other: Seat, findings: Findings): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps'
  for (let made = 0; made < objects; made += writtenAtOnce) {
    await Promise.all(
      Array.from({ length: writtenAtOnce }, (_, at) => {
        const body = { metadata: { name: `c${made + at}` }, data: { text: 'x'.repeat(200) } }
        return seat.ask(path, { method: 'POST', body })
      }),
    )
  }
  const accepts = {
    JSON: 'application/json',
    YAML: 'application/yaml',
    Table: 'application/json;as=Table;g=meta.k8s.io;v=v1',
    metadata: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    protobuf: 'application/vnd.kubernetes.protobuf',
  }
  const cases = [...Object.entries(accepts).map(([name, accept]) => [name, '', accept] as const)]
  for (const [name, query, accept] of [...cases, ['pretty', '?pretty=true', 'application/json'] as const]) {
    const { waitMs, status } = await meanwhile(other, () => seat.ask(`${path}${query}`, { headers: { accept } }))
    findings.equal(status, 200, `a list of ${objects} as ${name}`)
    findings.check(waitMs < waitMsMax, `[A8] a list of ${objects} as ${name} delays nobody`, `${Math.round(waitMs)} ms`)
  }
}

/** The longest that another client waited for a small answer while this was under way; no answer is a wait, too. */
async function meanwhile(
  other: Seat,
  doing: () => Promise<{ status: number }>,
): Promise<{ waitMs: number; status: number }> {
  let waitMs = 0
  let done = false
  const watching = (async () => {
    while (!done) {
      const begunMs = performance.now()
      await other.ask('/api/v1/namespaces/default').catch(() => undefined)
      waitMs = Math.max(waitMs, performance.now() - begunMs)
      await pause(askEveryMs)
    }
  })()
  const { status } = await doing().catch(() => ({ status: 0 }))
  done = true
  await watching
  return { waitMs, status }
}

function definition(properties: object): object {
  const spec = { type: 'object', properties: { spec: { type: 'object', properties } } }
  return {
    metadata: { name: `things.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: spec } }],
    },
  }
}

async function served(seat: Seat): Promise<void> {
  for (let tries = 50; (await seat.ask(things)).status !== 200; tries--) {
    if (tries === 0) throw new Error('the new resource is not served')
    await pause(100)
  }
}
