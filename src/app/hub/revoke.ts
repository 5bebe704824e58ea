/**
 * `ake hub revoke`: what was issued to an edge before a time counts no more, at any hub. It stands in a policy of the cluster, which hubs
 * follow: nothing of it is kept at a hub.
 */
import { systemClock } from '../../base/clock.ts'
import { Unavailable, UsageError } from '../../base/fault.ts'
import { createLog } from '../../base/log.ts'
import { forGood } from '../../hub/policy/revocation.ts'
import { askJson } from '../../upstream/askjson.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { HubRevokeConfig } from '../config.ts'
import { kinds } from '../optionkinds.ts'
import { withHubUpstream } from './upstream.ts'

type Revoked = { readonly name: string; readonly since: string }
type EdgePolicy = {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string }
  readonly spec?: { readonly revoked?: readonly Revoked[] } & Record<string, unknown>
}

/** The policy that this command writes; others may revoke, too. */
const policyName = 'revoked-edges'
const collection = '/apis/ake.dev/v1alpha1/edgepolicies'
const answerMsMax = 10_000
const answerBytesMax = 2 * 1024 * 1024
/** Each operator who revokes at the same time may take one. */
const triesMax = 5
/** As many as a policy holds. */
const revokedMax = 1_000

/** Answers what to print. */
export async function hubRevoke(name: string, config: HubRevokeConfig): Promise<string> {
  if (kinds.name.parse(name) === undefined)
    throw new UsageError(`"${name}" cannot be the name of a node: give the one in the cluster`)
  const since = sinceOf(config, systemClock.now())
  return await withHubUpstream({ ...config, log: createLog({ level: 'error' }) }, (upstream) =>
    config.undo ? undone(upstream, name) : revoked(upstream, { name, since }),
  )
}

/** From when on what is issued counts again. */
export function sinceOf(
  { since, forGood: isForGood, undo }: Pick<HubRevokeConfig, 'since' | 'forGood' | 'undo'>,
  now: number,
): string {
  if (isForGood && (since !== undefined || undo))
    throw new UsageError('--for-good stands for all time: leave out --since and --undo')
  return isForGood ? forGood : new Date(since ?? now).toISOString()
}

async function revoked(upstream: Asked, entry: Revoked): Promise<string> {
  await changed(upstream, (before) => {
    const known = before.find(({ name }) => name === entry.name)
    // A later one stands: what was revoked does not count again by being revoked once more.
    if (known !== undefined && Date.parse(known.since) >= Date.parse(entry.since)) return before
    const others = before.filter(({ name }) => name !== entry.name)
    if (others.length >= revokedMax)
      throw new UsageError(
        `edgepolicy/${policyName} names ${revokedMax} edges: take out those whose certificates have ended`,
      )
    return [...others, entry]
  })
  if (entry.since === forGood)
    return `${entry.name} is kept out, whatever is issued to it, until "ake hub revoke ${entry.name} --undo" (edgepolicy/${policyName}): hubs end its links within seconds\n`
  return `revoked what was issued to ${entry.name} before ${entry.since} (edgepolicy/${policyName}): hubs end its links within seconds\n`
}

async function undone(upstream: Asked, name: string): Promise<string> {
  let wasThere = false
  await changed(upstream, (before) => {
    wasThere = before.some((one) => one.name === name)
    return before.filter((one) => one.name !== name)
  })
  const others = (await listed(upstream)).filter(
    ({ metadata, spec }) => metadata.name !== policyName && spec?.revoked?.some((one) => one.name === name) === true,
  )
  const still = others.map(({ metadata }) => `edgepolicy/${metadata.name}`).join(', ')
  if (still !== '') throw new UsageError(`${still} revokes ${name}, too: change that policy`)
  if (!wasThere)
    throw new UsageError(`${name} is not revoked by edgepolicy/${policyName}: see "kubectl get edgepolicies"`)
  return `${name} is revoked no more: its certificates count again, each until its end\n`
}

type Asked = Pick<Upstream, 'ask'>

async function changed(upstream: Asked, change: (before: readonly Revoked[]) => readonly Revoked[]): Promise<void> {
  for (let tries = 0; tries < triesMax; tries++) {
    const known = await asked(upstream, 'GET', `${collection}/${policyName}`)
    const isNew = known.status === 404
    if (isNew) await listed(upstream) // says so where there is no such resource
    const policy: EdgePolicy = isNew ? fresh : (known.object as EdgePolicy)
    const before = policy.spec?.revoked ?? []
    const after = change(before)
    if (after === before || (isNew && after.length === 0)) return
    const spec = { ...policy.spec, revoked: after }
    const [method, path] = isNew ? (['POST', collection] as const) : (['PUT', `${collection}/${policyName}`] as const)
    const { status, object } = await asked(upstream, method, path, { ...policy, spec })
    if (status < 300) return
    if (status !== 409) throw refusedBy(status, object)
  }
  throw new Unavailable(`edgepolicy/${policyName} changes all the time: try again`)
}

const fresh: EdgePolicy & { readonly apiVersion: string; readonly kind: string } = {
  ...{ apiVersion: 'ake.dev/v1alpha1', kind: 'EdgePolicy', metadata: { name: policyName } },
}

async function listed(upstream: Asked): Promise<readonly EdgePolicy[]> {
  const { status, object } = await asked(upstream, 'GET', collection)
  if (status === 404) throw new UsageError('the cluster has no edgepolicies: apply deploy/edgepolicy.yaml first')
  if (status !== 200) throw refusedBy(status, object)
  return (object as { readonly items?: readonly EdgePolicy[] }).items ?? []
}

async function asked(upstream: Asked, method: string, path: string, content?: object) {
  const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
  const { status, text } = await askJson(upstream, { method, path, content, ...limits })
  if (status === 401 || status === 403) throw refusedBy(status, parsed(text))
  return { status, object: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

function refusedBy(status: number, object: unknown): UsageError {
  const { message = '' } = object as { readonly message?: string }
  return new UsageError(
    `the API server refuses (${status}): ${message}. The kubeconfig's user has to get, list, create and update edgepolicies`,
  )
}
