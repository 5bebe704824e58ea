/**
 * The four resources of RBAC as a client of the API server sees them, by list and watch: the evaluator under test is fed from
 * it change by change, as an edge feeds it, and a model of the authorizer reads the objects as they are.
 */
import { createInterface } from 'node:readline'
import { Rbac, type RbacResource } from '../../src/access/rbac/rbac.ts'
import { until } from '../../src/base/until.test-support.ts'
import type { Seat } from '../asking.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'

export const rbacResources = ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'] as const

export function pathOf(resource: RbacResource, key = ''): string {
  const [first = '', second] = key.split('/')
  const root = `/apis/${rbacGroup}/v1`
  if (key === '') return `${root}/${resource}`
  return second === undefined ? `${root}/${resource}/${first}` : `${root}/namespaces/${first}/${resource}/${second}`
}

type Metadata = {
  readonly name: string
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly resourceVersion?: string
}

type Top = { readonly apiVersion?: string; readonly kind?: string; readonly metadata: Metadata }

export type RuleBody = {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

export type RoleBody = Top & { readonly rules?: readonly RuleBody[] | null; readonly aggregationRule?: object }

export type SubjectBody = {
  readonly kind: 'User' | 'Group' | 'ServiceAccount'
  readonly apiGroup?: string
  readonly name: string
  readonly namespace?: string
}

export type BindingBody = Top & {
  readonly roleRef: { readonly apiGroup: string; readonly kind: string; readonly name: string }
  readonly subjects?: readonly SubjectBody[]
}

/** The objects themselves, by `namespace/name` or name. */
export class Held {
  readonly roles = new Map<string, RoleBody>()
  readonly bindings = new Map<string, BindingBody>()

  roleOf({ roleRef: { kind, name }, metadata: { namespace } }: BindingBody): RoleBody | undefined {
    return this.roles.get(kind === 'ClusterRole' ? name : `${namespace}/${name}`)
  }
}

const shownWithinMs = 10_000

export class RbacCopy {
  readonly rbac = new Rbac()
  readonly held = new Held()
  readonly #seat: Seat
  /** How far each resource is. */
  readonly #versions = new Map<RbacResource, number>()
  readonly #closing: (() => void)[] = []

  constructor(seat: Seat) {
    this.#seat = seat
  }

  async open(): Promise<void> {
    for (const resource of rbacResources) await this.#follow(resource)
  }

  close(): void {
    for (const close of this.#closing) close()
  }

  /** Resolves when what was written at this version is here. */
  async reach(resource: RbacResource, version: number): Promise<void> {
    const isHere = () => (this.#versions.get(resource) ?? 0) >= version
    await until(isHere, `${resource} at ${version}`, { withinMs: shownWithinMs })
  }

  async #follow(resource: RbacResource): Promise<void> {
    const listed = JSON.parse((await this.#seat.ask(pathOf(resource))).body) as {
      metadata: { resourceVersion: string }
      items: readonly Top[]
    }
    for (const item of listed.items) this.#take(resource, 'ADDED', item)
    const from = listed.metadata.resourceVersion
    this.#versions.set(resource, Number(from))
    const stream = await this.#seat.open(`${pathOf(resource)}?watch=1&resourceVersion=${from}`)
    this.#closing.push(() => stream.destroy())
    stream.on('error', () => {})
    createInterface({ input: stream }).on('line', (line) => {
      const { type, object } = JSON.parse(line) as { type: string; object: Top }
      this.#take(resource, type, object)
      this.#versions.set(resource, Number(object.metadata.resourceVersion))
    })
  }

  #take(resource: RbacResource, type: string, object: Top): void {
    const { namespace, name } = object.metadata
    const key = namespace === undefined ? name : `${namespace}/${name}`
    const isRole = resource === 'roles' || resource === 'clusterroles'
    if (type === 'DELETED') {
      this.rbac.delete(resource, key)
      if (isRole) this.held.roles.delete(key)
      else this.held.bindings.delete(key)
      return
    }
    this.rbac.put(resource, key, Buffer.from(JSON.stringify(object)))
    if (isRole) this.held.roles.set(key, object)
    else this.held.bindings.set(key, object as BindingBody)
  }
}
