/** `ake edge` as a target, in front of a real or a made-up API server, and the callers who ask it. */

import { setTimeout as pause } from 'node:timers/promises'
import { startAke } from '../ake.ts'
import type { Address, Target } from '../bench.ts'
import { connectTo } from '../client.ts'

/** A first sync of what a question needs, on a busy machine. */
const syncedMsMax = 60_000
const askAgainMs = 50

export type EdgeOptions = {
  readonly dir: string
  readonly server: string
  readonly kubeconfig: string
  readonly args?: readonly string[]
  readonly nodeOptions?: string
  readonly program?: string
}

export function startEdge({ dir, server, kubeconfig, args = [], ...rest }: EdgeOptions): Promise<Target> {
  return startAke({ command: ['edge', '--server', server, '--kubeconfig', kubeconfig, ...args], dir, ...rest })
}

/** Resolves when pods are kept and followed: with these fields if asking for them has to make it so, or as the options say. */
export async function untilSynced(edge: Address, query = ''): Promise<void> {
  const connection = await connectTo(edge, 'h2')
  const fields = new URLSearchParams(query).get('fieldSelector') ?? undefined
  const give = performance.now() + syncedMsMax
  const path = `/api/v1/pods?resourceVersion=0&limit=1${query.replace('?', '&')}`
  for (;;) {
    // Before discovery is known it is passed on, and makes nothing.
    await connection.ask({ path })
    const { text = '{}' } = await connection.ask({ path: '/ake/status' }, true)
    const { interests = [] } = JSON.parse(text) as { interests?: Kept[] }
    const others = interests.every(({ state }) => state === 'synced' || state === 'fed')
    if (others && interests.some((one) => one.resource === 'pods' && one.fields === fields)) break
    if (performance.now() > give) throw new Error(`the edge does not mirror ${path}: ${text.slice(0, 1_000)}`)
    await pause(askAgainMs)
  }
  connection.close()
}

type Kept = { readonly resource: string; readonly fields?: string; readonly state: string }

/** The edge's own opinion of its API server. */
export async function untilState(edge: Address, wanted: 'reachable' | 'unreachable', withinMs: number): Promise<void> {
  const connection = await connectTo(edge, 'h2')
  const give = performance.now() + withinMs
  for (;;) {
    const states = await figures(connection, 'ake_upstream_state')
    if (states.some(([series, value]) => series.includes(`"${wanted}"`) && value === 1)) break
    if (performance.now() > give) throw new Error(`the edge does not find its API server ${wanted}`)
    await pause(askAgainMs)
  }
  connection.close()
}

async function figures(
  connection: Awaited<ReturnType<typeof connectTo>>,
  name: string,
): Promise<[series: string, value: number][]> {
  const { text = '' } = await connection.ask({ path: '/metrics' }, true)
  return [...text.matchAll(new RegExp(`^${name}({[^}]*}) (\\S+)`, 'gm'))].map(([, series, value]) => {
    return [series!, Number(value)]
  })
}

/** The same edge asked by a service account; its token is for show, the stand-in of the API server takes any. */
export function asAccount({ url, tls }: Address): Address {
  return { url, tls, token: accountToken }
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const seconds = Math.floor(Date.now() / 1_000)
const claims = { sub: 'system:serviceaccount:team-00:default', iat: seconds, exp: seconds + 86_400 }
/** One for the whole run: offline, another one would be nobody's. */
const accountToken = `${part({ alg: 'RS256' })}.${part(claims)}.${part({})}`
