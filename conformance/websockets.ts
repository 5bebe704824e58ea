/**
 * Watches over WebSockets, as browsers open them: the same handshakes to a real kube-apiserver and to `ake serve`, and to an
 * edge in front of it, online and with the line cut. Compared are the answer to the handshake, every message, and the end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Ake } from './ake.ts'
import { differences } from './compare.ts'
import { Mapping } from './mapping.ts'
import { ask, type Oracle } from './oracle.ts'
import { type Site, startSite, untilReachable } from './site.ts'
import type { Step, StepContext, StepResult } from './step.ts'
import { clientFrame, type Opening, openWebSocket, type Server, type Told } from './websocketclient.ts'

const namespace = 'websockets'
const configmaps = `/api/v1/namespaces/${namespace}/configmaps`
/** A watch of nothing: only what the case does is heard. */
const silent = `${configmaps}?watch=1&labelSelector=none%3Dsuch`
const stateMsMax = 30_000
/** A change reaches the copy of an edge some moments after the API server has it. */
const settledMs = 500

type Case = Opening & {
  readonly name: string
  /** Not at an edge: it changes objects, or is an upgrade that is passed on as one. */
  readonly where?: 'serve'
}

function casesOn(change: (name: string, method: string) => Promise<void>): Case[] {
  const protobuf = 'application/vnd.kubernetes.protobuf'
  const token = 'base64url.bearer.authorization.k8s.io.bm8tc3VjaC10b2tlbg'
  const initial = `${configmaps}?watch=true&resourceVersion=0`
  return [
    { name: 'initial state', path: initial, messages: 2 },
    { name: 'with a selector', path: `${initial}&labelSelector=one%3Dtwo`, messages: 1 },
    { name: 'by name', path: `${initial}&fieldSelector=metadata.name%3Dfirst`, messages: 1 },
    { name: 'the old path', path: `/api/v1/watch/namespaces/${namespace}/configmaps`, messages: 2 },
    { name: 'the old path of one', path: `/api/v1/watch/namespaces/${namespace}/configmaps/first`, messages: 1 },
    {
      name: 'as Table',
      path: `${initial}&fieldSelector=metadata.name%3Dfirst`,
      headers: { Accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
      messages: 1,
    },
    {
      name: 'metadata alone',
      path: `${initial}&fieldSelector=metadata.name%3Dfirst`,
      headers: { Accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
      messages: 1,
    },
    { name: 'in protobuf', path: initial, headers: { Accept: protobuf }, messages: 2 },
    { name: 'in YAML', path: initial, headers: { Accept: 'application/yaml' } },
    {
      name: 'changes',
      path: `${configmaps}?watch=1&fieldSelector=metadata.name%3Dchanging`,
      messages: 3,
      where: 'serve',
      meanwhile: async () => {
        for (const method of ['POST', 'PATCH', 'DELETE']) await change('changing', method)
      },
    },
    {
      name: 'one subprotocol',
      path: `${silent}&timeoutSeconds=1`,
      headers: { 'Sec-WebSocket-Protocol': 'base64.binary.k8s.io' },
    },
    { name: 'two subprotocols', path: silent, headers: { 'Sec-WebSocket-Protocol': 'a, b' } },
    {
      name: 'a wrong token',
      path: silent,
      anonymous: true,
      headers: { 'Sec-WebSocket-Protocol': `${token}, base64.binary.k8s.io` },
    },
    { name: 'a token alone', path: silent, anonymous: true, headers: { 'Sec-WebSocket-Protocol': token } },
    { name: 'no origin', path: silent, headers: { Origin: undefined } },
    { name: 'origin null', path: silent, headers: { Origin: 'null' } },
    { name: 'no key', path: silent, headers: { 'Sec-WebSocket-Key': undefined } },
    { name: 'no version', path: silent, headers: { 'Sec-WebSocket-Version': undefined } },
    { name: 'version 8', path: silent, headers: { 'Sec-WebSocket-Version': '8' } },
    { name: 'a list', path: `${configmaps}?labelSelector=one%3Dtwo`, where: 'serve' },
    { name: 'no such resource', path: '/api/v1/nothings?watch=1', where: 'serve' },
    { name: 'a broken selector', path: `${configmaps}?watch=1&labelSelector=%3D%3D` },
    { name: 'a wrong version', path: `${configmaps}?watch=1&resourceVersion=x` },
    { name: 'a ping', path: `${silent}&timeoutSeconds=2`, send: clientFrame(9, 'still there?'), messages: 1 },
    { name: 'an empty ping', path: silent, send: clientFrame(9, ''), messages: 1 },
    { name: 'a close', path: silent, send: clientFrame(8, '\x03\xe9') },
    { name: 'a message', path: `${silent}&timeoutSeconds=1`, send: clientFrame(1, 'hello') },
    { name: 'an unmasked frame', path: silent, send: clientFrame(1, 'hello', false), messages: 1 },
    { name: 'the end of its time', path: `${silent}&timeoutSeconds=1` },
  ]
}

export const step: Step = { name: 'websockets', tier: 'default', minutes: 2, run }

async function run(context: StepContext): Promise<StepResult> {
  const faults: string[] = []
  let count = 0
  const note = (where: string, one: Case, difference: string | undefined) => {
    count++
    if (difference !== undefined) faults.push(`${where}/${one.name}: ${difference}`)
  }
  if (context.only('serve')) await serve(context, note)
  if (context.only('edge')) await edge(context, note)
  return { passed: count - faults.length, failed: faults.length, notes: faults }
}

type Note = (where: string, one: Case, difference: string | undefined) => void

async function serve(context: StepContext, note: Note): Promise<void> {
  const [oracle, ake] = [await context.oracle(), await context.ake()]
  const sides: [Server, Case[]][] = []
  for (const server of [oracle, ake]) {
    await prepare(server)
    sides.push([server, casesOn(changer(server))])
  }
  const [[real, ofReal], [ours, ofOurs]] = sides as [[Server, Case[]], [Server, Case[]]]
  for (const [at, one] of ofReal.entries()) {
    const told = await Promise.all([openWebSocket(real, one), openWebSocket(ours, ofOurs[at] as Case)])
    const [first, second] = told.map((answer) => mapped(answer))
    const [found] = differences(first, second, '')
    note('serve', one, found === undefined ? undefined : JSON.stringify(found))
  }
}

/** Through the edge the bytes are those of the API server; where it is away, those it last sent. */
async function edge(context: StepContext, note: Note): Promise<void> {
  const { dir, signal, progress } = context
  const site = await startSite({ dir, signal, progress })
  try {
    const { oracle } = site
    const { ake } = await site.edge('edge')
    await prepare(oracle)
    const cases = casesOn(changer(oracle)).filter(({ where }) => where !== 'serve')
    // Once each: from then on the copy has what is asked for.
    for (const one of cases) await openWebSocket(ake, one)
    await pause(settledMs)
    const real = new Map<Case, Told>()
    for (const one of cases) {
      const [direct, through] = await Promise.all([openWebSocket(oracle, one), openWebSocket(ake, one)])
      real.set(one, direct)
      note('edge', one, byteDifference(direct, through))
    }
    await cut(site, { ake, oracle, real }, note)
  } finally {
    await site.stop()
  }
}

type Cut = { readonly ake: Ake; readonly oracle: Oracle; readonly real: ReadonlyMap<Case, Told> }

async function cut(site: Site, { ake, real }: Cut, note: Note): Promise<void> {
  await site.link.set('refuse')
  await untilReachable(site, false, stateMsMax)
  for (const [one, direct] of real) {
    // Who a stranger is only the API server can tell, and what is asked of it alone stays unanswered.
    if (one.anonymous === true) continue
    note('offline', one, byteDifference(direct, await openWebSocket(ake, one)))
  }
}

async function prepare(server: Server): Promise<void> {
  await ask(server, '/api/v1/namespaces', { method: 'POST', body: { metadata: { name: namespace } } })
  for (const [name, labels] of [
    ['first', { one: 'two' }],
    ['second', {}],
  ] as const) {
    await ask(server, configmaps, { method: 'POST', body: { metadata: { name, labels }, data: { key: 'ü\n<&>' } } })
  }
}

function changer(server: Server): (name: string, method: string) => Promise<void> {
  return async (name, method) => {
    const path = method === 'POST' ? configmaps : `${configmaps}/${name}`
    const body =
      method === 'POST' ? { metadata: { name } } : method === 'PATCH' ? { data: { changed: 'yes' } } : undefined
    const headers: Record<string, string> = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {}
    const { status } = await ask(server, path, { method, headers, body })
    if (status >= 300) throw new Error(`${method} ${path}: ${status}`)
  }
}

/** Of the connection, of the moment, or of what is not served here. */
const unread = /^(date|audit-id|connection|keep-alive|content-length|transfer-encoding|warning|x-kubernetes-pf-.*)$/

function headersOf({ headers }: Told): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name === 'sec-websocket-accept' || !unread.test(name)))
}

const controlFrames = 8

/** As two servers of one kind can be compared that hold other objects of the same names. */
function mapped(told: Told): unknown {
  const mapping = new Mapping(Date.now())
  const frames = told.frames.map(({ opcode, payload }) => {
    if (opcode >= controlFrames) return { opcode, payload: payload.toString('hex') }
    // What is inside a message in protobuf is compared elsewhere: here, that it is one of an event.
    if (opcode === 2)
      return {
        opcode,
        payload: payload
          .subarray(0, 16)
          .toString('latin1')
          .replace(/[^A-Z]+.*/s, ''),
      }
    return {
      opcode,
      endsLine: payload.at(-1) === 0x0a,
      event: withoutProse(mapping.json(JSON.parse(payload.toString()))),
    }
  })
  const body = told.body.startsWith('{') ? mapping.json(JSON.parse(told.body)) : told.body
  return { status: told.status, headers: headersOf(told), body, frames }
}

/** Tables of built-ins come without Kubernetes' explanations of their columns. */
function withoutProse(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, inner) => (key === 'description' ? '' : inner))
}

function byteDifference(real: Told, ours: Told): string | undefined {
  const [first, second] = [real, ours].map((told) => ({
    status: told.status,
    headers: headersOf(told),
    body: told.body.replace(/"resourceVersion":"\d+"\},"items"/, '"items"'),
    frames: told.frames.map(({ opcode, payload }) => ({ opcode, payload: withoutDescriptions(payload) })),
  }))
  const [found] = differences(first, second, '')
  return found === undefined ? undefined : JSON.stringify(found)
}

/** Nor with ages in it, which are of the moment. */
function withoutDescriptions(payload: Buffer): string {
  const text = payload.toString('latin1').replaceAll(/"description":"[^"]*"/g, '"description":""')
  return text.replaceAll(/,"\d+[smh]"\]/g, ',"<age>"]')
}
