/** An API server that answers wrongly again and again: how often an edge asks it, and what its callers get meanwhile. */
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import type { Findings } from '../findings.ts'
import type { Action, Asked } from './scripted.ts'
import { type Attacked, space, type World } from './world.ts'

const observedMs = 6_000
/** Of one resource in that time: a first look, its watch, and retries that back off. */
const requestsMax = 25
/** A first sync that cannot succeed is given up after so long at the latest, and its callers are passed on. */
const passedOnMsMax = 90_000
/** How long invented names may occupy a watch each: none does at the first asking. */
const namesAsked = 300

const bookmark = (version: string) =>
  JSON.stringify({
    type: 'BOOKMARK',
    object: { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata: { resourceVersion: version } },
  })
const wrongKind = JSON.stringify({
  type: 'ADDED',
  object: { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'x', namespace: space, resourceVersion: '99999999' } },
})
const gone = JSON.stringify({
  type: 'ERROR',
  object: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason: 'Expired', code: 410 },
})

type Misbehaviour = {
  readonly name: string
  readonly resource: string
  readonly does: (asked: Asked) => Action | undefined
}

const isWatch = ({ query }: Asked) => query.get('watch') === 'true' || query.get('watch') === '1'
const onWatch = (action: Action) => (asked: Asked) => (isWatch(asked) ? action : undefined)
const refusing = (after: string) => onWatch({ kind: 'answer', status: 429, headers: { 'retry-after': after } })

const misbehaviours: readonly Misbehaviour[] = [
  { name: 'Retry-After is a date', resource: 'endpoints', does: refusing('Wed, 21 Oct 2099 07:28:00 GMT') },
  { name: 'Retry-After is longer than any timer', resource: 'limitranges', does: refusing('99999999999') },
  { name: 'Retry-After is nothing', resource: 'podtemplates', does: refusing('soon') },
  { name: 'Retry-After is below zero', resource: 'replicationcontrollers', does: refusing('-5') },
  {
    name: 'each watch is one bookmark and an end',
    resource: 'resourcequotas',
    does: onWatch({ kind: 'frames', frames: [bookmark('1')] }),
  },
  {
    name: 'each watch is an event of a wrong kind',
    resource: 'services',
    does: onWatch({ kind: 'frames', frames: [wrongKind] }),
  },
  { name: 'each watch is too old', resource: 'serviceaccounts', does: onWatch({ kind: 'frames', frames: [gone] }) },
  {
    name: 'each watch is no JSON',
    resource: 'persistentvolumeclaims',
    does: onWatch({ kind: 'frames', frames: ['{"type":'] }),
  },
]

/** Item by item at the same time: each misbehaves for a resource of its own. */
export async function attackLoops(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const of = (resource: string) => `/api/v1/namespaces/${space}/${resource}`
  const stops = misbehaviours.map(({ resource, does }) =>
    world.scripted.script((asked) => (asked.path === of(resource) ? does(asked) : undefined)),
  )
  const administrator = edge.administrator()
  try {
    const before = misbehaviours.map(({ resource }) => world.scripted.count(({ path }) => path === of(resource)))
    await Promise.all(
      misbehaviours.map(({ resource }) => administrator.watch(`${of(resource)}?watch=1&resourceVersion=0`, observedMs)),
    )
    for (const [at, { name, resource }] of misbehaviours.entries()) {
      const asked = world.scripted.count(({ path }) => path === of(resource)) - before[at]!
      findings.check(asked <= requestsMax, `[L4] ${name}: retries back off`, `${asked} requests in ${observedMs} ms`)
    }
  } finally {
    for (const stop of stops) stop()
    administrator.close()
  }
}

/** A first sync that fails for the edge alone, and one whose versions no number can hold. */
export async function attackFirstSyncs(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const fails = '/apis/apps/v1/controllerrevisions'
  const huge = '/apis/apps/v1/replicasets'
  const reader = edge.administrator()
  const isOwn = ({ query }: Asked) => query.has('limit') || query.has('watch')
  const stops = [
    world.scripted.script((asked) =>
      asked.path === fails && isOwn(asked) ? { kind: 'answer', status: 500 } : undefined,
    ),
    world.scripted.script((asked) =>
      asked.path === huge
        ? {
            kind: 'rewrite',
            made: (body) => body.replace(/"resourceVersion":"\d+"/g, '"resourceVersion":"99999999999999999999"'),
          }
        : undefined,
    ),
  ]
  try {
    for (const path of [fails, huge]) {
      const begunMs = performance.now()
      const isPassedOn = async () => {
        const { status } = await reader.ask(`${path}?resourceVersion=0`).catch(() => ({ status: 0 }))
        return status === 200
      }
      const waiting = { withinMs: passedOnMsMax, everyMs: 100, signal: world.signal }
      await until(isPassedOn, `${path} is passed on`, waiting)
      findings.check(
        true,
        `a first sync that cannot succeed ends: ${path} after ${Math.round(performance.now() - begunMs)} ms`,
      )
    }
    const { passedThrough } = await edge.status<{ passedThrough: { resource: string; why: string }[] }>()
    for (const resource of ['controllerrevisions', 'replicasets']) {
      const said = passedThrough.find((one) => one.resource === resource)
      findings.check(
        said !== undefined && said.why !== '',
        `ake status says why ${resource} is passed through`,
        passedThrough,
      )
    }
  } finally {
    for (const stop of stops) stop()
    reader.close()
  }
}

/** Names that do not exist, asked for once each: no watch for any of them. */
export async function attackNamesThatAreNot(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const rules = [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }]
  const token = await world.account('inventor', rules)
  const seats = Array.from({ length: 8 }, () => edge.seat({ token }))
  const path = (at: number) => `/apis/apps/v1/namespaces/${space}/deployments/invented-${at}`
  const statuses = await Promise.all(
    seats.map(async (seat, at) => {
      const found: number[] = []
      for (let number = at; number < namesAsked; number += seats.length)
        found.push((await seat.ask(path(number))).status)
      return found
    }),
  )
  findings.equal([...new Set(statuses.flat())], [404], 'what does not exist is 404')
  await pause(1_000)
  const { interests } = await edge.status<{ interests: { resource: string; fields?: string }[] }>()
  const kept = interests.filter(({ resource, fields }) => resource === 'deployments' && fields?.includes('invented-'))
  findings.equal(kept.length, 0, `${namesAsked} invented names are no interests`)
}
