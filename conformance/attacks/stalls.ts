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
/** What another client may wait for a server that works on one request, beyond what the machine itself makes it wait. */
const waitMsMax = 50
/** A machine is late now and then, a server that is held up each time: the least of so many counts. */
const triesMax = 3
const idleMs = 1_000
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
    const status = await delaysNobody(other, findings, name, () => seat.ask(things, { method: 'POST', body }))
    findings.equal(status, 422, `${name} is refused`)
  }
}

async function forms(seat: Seat, other: Seat, findings: Findings): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps'
  const write = async (method: 'POST' | 'PUT', text: string) => {
    for (let made = 0; made < objects; made += writtenAtOnce) {
      await Promise.all(
        Array.from({ length: writtenAtOnce }, (_, at) => {
          const name = `c${made + at}`
          const body = { metadata: { name }, data: { text: text.repeat(200) } }
          return seat.ask(method === 'POST' ? path : `${path}/${name}`, { method, body })
        }),
      )
    }
  }
  await write('POST', 'x')
  let text = 'y'
  // Messages are made once of each version of an object: another try would find them made.
  const anew = async () => {
    await write('PUT', text)
    text += 'y'
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
    const what = `a list of ${objects} as ${name}`
    const ask = () => seat.ask(`${path}${query}`, { headers: { accept } })
    const status = await delaysNobody(other, findings, what, ask, name === 'protobuf' ? anew : undefined)
    findings.equal(status, 200, what)
  }
}

/** The longest that the machine keeps a process with work from running, as it does to the server: what only waits is let in sooner. */
function latenessMs(): number {
  let longest = 0
  let at = performance.now()
  for (const untilMs = at + idleMs; at < untilMs; ) {
    const now = performance.now()
    longest = Math.max(longest, now - at)
    at = now
  }
  return longest
}

/** Says how long another client waited, and right before how long for a server with nothing to do, and how late the machine is. */
async function delaysNobody(
  other: Seat,
  findings: Findings,
  name: string,
  doing: () => Promise<{ status: number }>,
  /** What has to be done for another try to be the same work. */
  anew?: () => Promise<void>,
): Promise<number> {
  const waits: string[] = []
  for (let tries = 1; ; tries++) {
    const idle = await meanwhile(other, () => pause(idleMs, { status: 0 }))
    const lateMs = latenessMs()
    const { waitMs, status } = await meanwhile(other, doing)
    waits.push(`${Math.round(waitMs)} ms (idle: ${Math.round(idle.waitMs)} ms, machine: ${Math.round(lateMs)} ms)`)
    const isSoon = waitMs < waitMsMax + idle.waitMs + lateMs
    if (!isSoon && tries < triesMax) {
      await anew?.()
      continue
    }
    findings.check(isSoon, `[A8] ${name} delays nobody`, waits.join(', '))
    findings.note(`another client waits beside ${name}: ${waits.join(', ')}`)
    return status
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
