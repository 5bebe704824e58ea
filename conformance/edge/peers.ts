/**
 * What reading through the systems before this one got wrong, each as a check of its own by name: online, offline, after a
 * restart offline, and when the line is back.
 */
import type { Ake } from '../ake.ts'
import { apps, configMap, core, deployment, pod, secret } from '../corpus/fixtures.ts'
import { watch } from '../corpus.ts'
import { Side } from '../exchange.ts'
import { ask, type Oracle } from '../oracle.ts'
import type { Outcome } from '../verdict.ts'

const maps = core('peers', 'configmaps')
const pages = core('peers-pages', 'configmaps')
const pods = core('peers', 'pods')
const events = core('peers', 'events')
const newEvents = '/apis/events.k8s.io/v1/namespaces/peers/events'
const deployments = apps('peers', 'deployments')
const initial = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
const pageSize = 7
const paged = 25

/** A continue token that the API server itself gave out. */
let foreign = ''

const phases = ['online', 'offline', 'restarted', 'blackhole', 'returned'] as const
export type Phase = (typeof phases)[number]

const event = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'e' },
  involvedObject: { kind: 'Pod', namespace: 'peers', name: 'on-a' },
  type: 'Normal',
}

const made: readonly (readonly [string, object])[] = [
  ['/api/v1/namespaces', { metadata: { name: 'peers' } }],
  ['/api/v1/namespaces', { metadata: { name: 'peers-pages' } }],
  [core('peers', 'serviceaccounts'), { metadata: { name: 'default' } }],
  ...['1', '2', '1', '2'].map((g, at) => [maps, configMap(`g${at}`, { g }, { labels: { g } })] as const),
  [maps, configMap('gone', { k: 'v' })],
  [maps, configMap('ghost', { k: 'v' }, { labels: { ghost: 'yes' } })],
  ...Array.from({ length: paged }, (_, at) => [pages, configMap(`p${at}`, { k: 'v' })] as const),
  [pods, pod('on-a', { app: 'a' }, { nodeName: 'a' })],
  [pods, pod('on-b', { app: 'b' }, { nodeName: 'b' })],
  [core('peers', 'secrets'), secret('known', { k: 'dg==' })],
  ...phases.map((phase) => [core('peers', 'secrets'), secret(`unknown-${phase}`, { k: 'dg==' })] as const),
  [events, event],
  [deployments, deployment('d', 3)],
]

/** What clients of this edge had asked before the line was cut. */
const asked: readonly string[] = [
  `${maps}?labelSelector=g%3D1&resourceVersion=0`,
  `${maps}?labelSelector=g%3D2&resourceVersion=0`,
  `${maps}?fieldSelector=metadata.name%3Dabsent&resourceVersion=0`,
  `${maps}?labelSelector=ghost&resourceVersion=0`,
  `${maps}/gone`,
  `${maps}/ghost`,
  `${pods}?fieldSelector=spec.nodeName%3Da&resourceVersion=0`,
  `${pods}?fieldSelector=spec.nodeName%3Dc&resourceVersion=0`,
  `${core('peers', 'secrets')}/known`,
  ...[1, 2].flatMap(() => [`${pages}?limit=${pageSize}`, events, newEvents]),
  `${deployments}?resourceVersion=0`,
  `${deployments}/d/scale`,
  '/version',
  '/api',
  '/apis',
  '/api/v1',
  '/openapi/v2',
]

export async function preparePeers(oracle: Oracle, edge: Ake, reachable: () => Promise<void>): Promise<void> {
  for (const [path, body] of made) {
    const { status, body: said } = await ask(oracle, path, { method: 'POST', body })
    if (status !== 201) throw new Error(`the API server did not take ${path}: ${said}`)
  }
  await reachable()
  for (const path of asked) await ask(edge, path)
  foreign = (await list(oracle, `${pages}?limit=${pageSize}`)).metadata.continue ?? ''
  await ask(oracle, `${maps}/gone`, { method: 'DELETE' })
}

type Parts = { readonly edge: Ake; readonly away: boolean; readonly phase: Phase }
type Check = {
  readonly name: string
  /** What is wrong, or nothing. */
  readonly find: (parts: Parts) => Promise<string | undefined>
}

export async function peerChecks(phase: Phase, edge: Ake): Promise<Outcome[]> {
  const away = phase === 'offline' || phase === 'restarted' || phase === 'blackhole'
  const outcomes: Outcome[] = []
  for (const { name, find } of checks) {
    const fault = await find({ edge, away, phase }).catch(String)
    const open = fault === undefined ? [] : [{ field: 'check', real: name, ours: fault }]
    outcomes.push({ name: `${phase}/peers/${name}`, open, listed: new Set() })
  }
  return outcomes
}

type List = {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

async function list(
  edge: Pick<Ake, 'url' | 'ca' | 'cert' | 'key'>,
  path: string,
  headers: Record<string, string> = {},
): Promise<List> {
  const { status, body } = await ask(edge, path, { headers })
  if (status !== 200) throw new Error(`${path}: ${status} ${body}`)
  return JSON.parse(body) as List
}

const namesOf = ({ items }: List) => items.map(({ metadata }) => metadata.name).join()

async function shows(edge: Ake, path: string, names: string): Promise<string | undefined> {
  const found = await list(edge, path)
  return namesOf(found) === names ? undefined : `${path} shows ${namesOf(found)} instead of ${names}`
}

async function frames(edge: Ake, path: string): Promise<{ type: string; name: string; ended: boolean }[]> {
  const side = new Side(edge)
  const { body } = await (await side.watch(watch('', path, []), new Map())).finish()
  side.close()
  const lines = body.split('\n').filter(Boolean)
  return lines.map((line) => {
    const { type, object } = JSON.parse(line) as { type: string; object: { metadata?: { name?: string } } }
    return { type, name: object.metadata?.name ?? '', ended: line.includes('k8s.io/initial-events-end') }
  })
}

const checks: readonly Check[] = [
  {
    name: 'WatchList completes (openyurt 1)',
    find: async ({ edge }) => {
      const told = await frames(edge, `${pods}?${initial}&fieldSelector=spec.nodeName%3Da&timeoutSeconds=1`)
      const said = told.filter(({ type, ended }) => type !== 'BOOKMARK' || ended)
      const text = said.map(({ type, name, ended }) => (ended ? 'end' : `${type} ${name}`)).join()
      return text === 'ADDED on-a,end' ? undefined : `the stream says ${text}`
    },
  },
  {
    name: 'what was deleted while the line was cut is no ghost afterwards (openyurt 2)',
    find: async ({ edge, phase }) => {
      if (phase !== 'returned') return shows(edge, `${maps}?labelSelector=ghost`, 'ghost')
      const { status } = await ask(edge, `${maps}/ghost?resourceVersion=0`)
      return status === 404
        ? await shows(edge, `${maps}?labelSelector=ghost`, '')
        : `the ghost is answered with ${status}`
    },
  },
  {
    name: 'an empty list by name empties nothing else (openyurt 4)',
    find: async ({ edge }) =>
      (await shows(edge, `${maps}?fieldSelector=metadata.name%3Dabsent`, '')) ??
      (await shows(edge, `${maps}?labelSelector=g%3D1`, 'g0,g2')),
  },
  {
    name: 'pages are of one list and all of it (openyurt 4, superedge 3)',
    find: async ({ edge }) => {
      const names = new Set<string>()
      let next = ''
      let count = 0
      do {
        const page = await list(edge, `${pages}?limit=${pageSize}${next}`)
        for (const { metadata } of page.items) names.add(metadata.name)
        count++
        next = page.metadata.continue === undefined ? '' : `&continue=${encodeURIComponent(page.metadata.continue)}`
      } while (next !== '' && count < paged)
      const whole = Math.ceil(paged / pageSize)
      return names.size === paged && count === whole ? undefined : `${names.size} objects on ${count} pages`
    },
  },
  {
    name: 'a page begun at the API server goes on at the edge, or is said to be over (superedge 3)',
    find: async ({ edge }) => {
      const path = `${pages}?limit=${pageSize}&continue=${encodeURIComponent(foreign)}`
      const { status, body } = await ask(edge, path)
      if (status === 410) return undefined
      const whole = namesOf(await list(edge, pages)).split(',')
      const expected = whole.slice(pageSize, 2 * pageSize).join()
      const shown = status === 200 ? namesOf(JSON.parse(body) as List) : body
      return shown === expected ? undefined : `${status}: ${shown} instead of ${expected}`
    },
  },
  {
    name: 'documents have their status and content type (openyurt 9)',
    find: async ({ edge }) => {
      const side = new Side(edge)
      const wrong: string[] = []
      for (const path of ['/version', '/api', '/apis', '/api/v1', '/apis/apps/v1', '/openapi/v2', '/readyz']) {
        const one = { name: '', method: 'GET', path, headers: {} }
        const { status, headers } = await side.exchange(one, new Map())
        const type = String(headers['content-type'])
        const right = path === '/readyz' ? type.startsWith('text/plain') : type.startsWith('application/json')
        if (status !== 200 || !right) wrong.push(`${path}: ${status} ${type}`)
      }
      side.close()
      return wrong.length === 0 ? undefined : wrong.join('; ')
    },
  },
  {
    name: 'an unguessable plural has its list kind (openyurt 14, kubeedge 1.2)',
    find: async ({ edge }) => {
      const found = await list(edge, '/apis/odd.example.com/v1/namespaces/odd/flock?resourceVersion=0')
      return found.kind === 'Herd' && namesOf(found) === 'one,two' ? undefined : `${found.kind} of ${namesOf(found)}`
    },
  },
  {
    name: 'selectors are never mixed (superedge 3)',
    find: async ({ edge }) =>
      (await shows(edge, `${maps}?labelSelector=g%3D1&resourceVersion=0`, 'g0,g2')) ??
      (await shows(edge, `${maps}?labelSelector=g%3D2&resourceVersion=0`, 'g1,g3')),
  },
  {
    name: 'groups are never mixed (superedge 3)',
    find: async ({ edge, away }) => {
      const wrong: string[] = []
      for (const [path, version] of [
        [events, 'v1'],
        [newEvents, 'events.k8s.io/v1'],
      ] as const) {
        const { status, body } = await ask(edge, path)
        // Never mirrored unless somebody asks for it on the command line: then nothing is said about them.
        if (away ? status !== 503 : (JSON.parse(body) as List).apiVersion !== version)
          wrong.push(`${path}: ${status} ${body}`)
      }
      return wrong.length === 0 ? undefined : wrong.join('; ')
    },
  },
  {
    name: 'the user agent does not matter (superedge 5)',
    find: async ({ edge }) => {
      const path = `${maps}?labelSelector=g%3D1&resourceVersion=0`
      const agents = ['kubelet/v1.30.0 (linux/amd64)', 'kubelet/v1.36.3 (linux/arm64)', 'Go-http-client/2.0', '..']
      const seen = await Promise.all(
        agents.map(async (agent) => namesOf(await list(edge, path, { 'user-agent': agent }))),
      )
      return new Set(seen).size === 1 ? undefined : `they see ${seen.join(' and ')}`
    },
  },
  {
    name: 'a watch from version 0 tells everything once (superedge 6)',
    find: async ({ edge }) => {
      const query = 'watch=true&resourceVersion=0&labelSelector=g&timeoutSeconds=1'
      const told = (await frames(edge, `${maps}?${query}`)).map(({ type, name }) => `${type} ${name}`)
      return told.join() === 'ADDED g0,ADDED g1,ADDED g2,ADDED g3' ? undefined : `it tells ${told.join()}`
    },
  },
  {
    name: 'what was deleted is not served (superedge 6)',
    find: async ({ edge }) => {
      const { status, body } = await ask(edge, `${maps}/gone`)
      return status === 404 ? undefined : `${status} ${body}`
    },
  },
  {
    name: 'what nobody ever read is no 404 (superedge 7)',
    find: async ({ edge, away, phase }) => {
      if (!away) return undefined
      // Others each time: who asks for one offline gets it when the line is back.
      const wrong: string[] = []
      const unread = [
        `${core('peers', 'secrets')}/unknown-${phase}`,
        `${core('peers', 'secrets')}/never-was-${phase}`,
        core('peers', 'secrets'),
        `${core('peers', 'secrets')}?watch=true&timeoutSeconds=1`,
        core('peers', 'replicationcontrollers'),
        '/apis/never.example.com/v1/things',
      ]
      for (const path of unread) {
        const { status, body } = await ask(edge, path)
        if (status !== 503 || !body.includes('"kind":"Status"')) wrong.push(`${path}: ${status} ${body}`)
      }
      const { status } = await ask(edge, `${core('peers', 'secrets')}/known`)
      if (status !== 200) wrong.push(`the secret that was read: ${status}`)
      return wrong.length === 0 ? undefined : wrong.join('; ')
    },
  },
  {
    name: 'fields of the kind select, and a list of nothing has its version (kubeedge 1.2)',
    find: async ({ edge }) => {
      const none = await list(edge, `${pods}?fieldSelector=spec.nodeName%3Dc`)
      if (none.items.length > 0 || !(Number(none.metadata.resourceVersion) > 0)) return JSON.stringify(none)
      return await shows(edge, `${pods}?fieldSelector=spec.nodeName%3Da`, 'on-a')
    },
  },
  {
    name: 'a subresource is itself or nothing (kubeedge 1.1)',
    find: async ({ edge }) => {
      const scale = await ask(edge, `${deployments}/d/scale`)
      const status = await ask(edge, `${deployments}/d/status`)
      if (!scale.body.includes('"kind":"Scale"') || !scale.body.includes('"spec":{"replicas":3}'))
        return `scale: ${scale.status} ${scale.body}`
      return status.body.includes('"kind":"Deployment"') ? undefined : `status: ${status.status} ${status.body}`
    },
  },
]
