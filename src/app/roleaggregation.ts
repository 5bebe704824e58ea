/**
 * Keeps aggregated ClusterRoles aggregated: the rules of those that their selectors name are written into them, as the controller
 * of Kubernetes does, since clients read them there. A role that is changed may be one that others gather, so each change is
 * reason to look at all of them: there are few.
 */
import { type AggregableRole, aggregatedRules, printRules, readAggregable } from '../access/rbac/aggregation.ts'
import { Bell } from '../base/bell.ts'
import type { Clock } from '../base/clock.ts'
import { reasonOf } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { AuthorityCopy } from '../cache/authoritycopy.ts'
import type { Cache } from '../cache/cache.ts'
import type { Item } from '../cache/item.ts'
import type { OwnCatalog } from '../endpoint/owncatalog.ts'
import type { Resource } from '../kube/resource.ts'
import { StatusError } from '../kube/status.ts'
import type { Writer } from '../write/writer.ts'
import { asServer, bootstrapRoles, resourceOf } from './bootstrap.ts'

const manager = 'clusterrole-aggregation-controller'
/** After a write that failed, which a disk that refuses does until it heals. */
const retryMs = 5_000
/** Roles that gather roles that gather: each round brings rules one further. */
const roundsMax = 8

type RoleParts = {
  readonly copy: AuthorityCopy
  readonly resources: OwnCatalog
  readonly writer: Writer
  readonly clock: Clock
  readonly log: Log
}

/** The default roles are there, and filled, before any caller is judged by them. */
export async function beginRoles({ copy, resources, writer, clock, log }: RoleParts): Promise<RoleAggregation> {
  await bootstrapRoles(writer, resources, (interest, key) => copy.cache(interest).peek(key) !== undefined)
  const at = { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' }
  const resource = resourceOf(resources, at)
  const aggregation = new RoleAggregation({ cache: copy.cache(resource.interest), resource, writer, clock, log })
  await aggregation.settle()
  return aggregation
}

type Parts = {
  readonly cache: Cache
  readonly resource: Resource
  readonly writer: Pick<Writer, 'patch'>
  readonly clock: Clock
  readonly log: Log
}

/** Whether something was to be written. */
type Written = 'none' | 'some' | 'failed'

export class RoleAggregation {
  readonly #parts: Parts
  readonly #bell: Bell
  readonly #read = new WeakMap<Item, AggregableRole>()
  #told = ''

  constructor(parts: Parts) {
    this.#parts = parts
    this.#bell = new Bell(parts.clock)
    parts.cache.observe(() => this.#bell.ring())
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const isSettled = await this.settle()
      await this.#bell.wait(signal, isSettled ? undefined : retryMs)
    }
  }

  /** Resolves when every aggregated role has its rules; with false where one could not be written, or they keep changing. */
  async settle(): Promise<boolean> {
    for (let round = 0; round < roundsMax; round++) {
      const written = await this.#round()
      if (written !== 'some') return written === 'none'
    }
    return false
  }

  async #round(): Promise<Written> {
    const { cache } = this.#parts
    let said: Written = 'none'
    for (const { key } of cache.all().filter((item) => this.#roleOf(item).selectors !== undefined)) {
      // What was written in this round counts for the roles that follow.
      const all = cache.all()
      const item = all.find((one) => one.key === key)
      if (item === undefined) continue
      const role = this.#roleOf(item)
      const rules = aggregatedRules(
        role,
        all.map((one) => this.#roleOf(one)),
      )
      if (role.selectors === undefined || JSON.stringify(rules) === JSON.stringify(role.rules)) continue
      const written = await this.#write(key, item.version, printRules(rules))
      if (written === 'failed') return written
      if (written === 'some') said = written
    }
    return said
  }

  async #write(name: string, version: number, all: readonly object[]): Promise<Written> {
    const { writer, resource, log } = this.#parts
    // The version keeps an apply from making anew what is being deleted, and from going by what was changed meanwhile.
    const metadata = { name, resourceVersion: String(version) }
    // Where there are none an apply gives up what it wrote before; what another has written stays.
    const rules = all.length === 0 ? undefined : all
    const body = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata, rules }
    const query: Readonly<Record<string, string>> = { fieldManager: manager, force: 'true' }
    try {
      const { item } = await writer.patch({
        ...{ resource, subresource: '', namespace: '', name, format: 'json', patchKind: 'apply', caller: asServer },
        query: (one) => query[one],
        body: Buffer.from(JSON.stringify(body)),
        userAgent: manager,
      })
      return item?.version === version ? 'none' : 'some'
    } catch (error) {
      // It was changed or deleted meanwhile: the next round sees.
      if (error instanceof StatusError && (error.code === 409 || error.code === 404)) return 'some'
      const why = reasonOf(error)
      if (why !== this.#told) log.warn('roles.unaggregated', { role: name, why })
      this.#told = why
      return 'failed'
    }
  }

  #roleOf(item: Item): AggregableRole {
    const known = this.#read.get(item)
    if (known !== undefined) return known
    const role = readAggregable(item.bytes)
    this.#read.set(item, role)
    return role
  }
}
