/**
 * Reviews, asked of the API server and through the edge, with the cloud there and without it: the same answers, by what the
 * edge has learned from reads; and none about what it has not.
 */
import type { Findings } from '../findings.ts'
import { nodes } from './objects.ts'
import type { RightsWorld } from './world.ts'

type ReviewCase = { readonly who: string; readonly kind: string; readonly spec?: object }

const groups: Readonly<Record<string, string>> = {
  SelfSubjectReview: 'authentication.k8s.io',
  TokenReview: 'authentication.k8s.io',
}

const inA = { namespace: 'rights-a', version: 'v1' }
const list = { ...inA, verb: 'list', resource: 'configmaps' }
const secret = (name: string) => ({ ...inA, verb: 'get', resource: 'secrets', name })
const podsOf = (node: string) => ({
  verb: 'list',
  version: 'v1',
  resource: 'pods',
  fieldSelector: { requirements: [{ key: 'spec.nodeName', operator: 'In', values: [node] }] },
})
const [mine, theirs] = [podsOf(nodes[0]), podsOf(nodes[1])]

export class RightsReviews {
  readonly #world: RightsWorld
  readonly #findings: Findings
  #cases: ReadonlyMap<ReviewCase, string> = new Map()

  constructor(world: RightsWorld, findings: Findings) {
    this.#world = world
    this.#findings = findings
  }

  /** What the API server says, to the caller itself and through the edge, which learns from it who may ask about others. */
  async learn(): Promise<void> {
    const told = new Map<ReviewCase, string>()
    for (const one of await this.#all()) {
      told.set(one, await this.#ask('direct', one))
      this.#findings.equal(await this.#ask('through', one), told.get(one), `online: ${nameOf(one)}`)
    }
    this.#cases = told
  }

  async compare(when: string): Promise<void> {
    for (const [one, told] of this.#cases) {
      this.#findings.equal(await this.#ask('through', one), told, `${when}: ${nameOf(one)}`)
    }
    for (const one of [
      { who: 'node', kind: 'TokenReview', spec: { token: 'never-seen' } },
      { who: 'node', kind: 'SubjectAccessReview', spec: { user: 'stranger', resourceAttributes: list } },
      { who: 'reader', kind: 'SubjectAccessReview', spec: { user: 'stranger', resourceAttributes: list } },
    ]) {
      const said = await this.#ask('through', one)
      this.#findings.check(
        /^(503|403|201 .*"allowed":false)/.test(said),
        `${when}: nothing is made up: ${nameOf(one)}`,
        said,
      )
    }
  }

  async #all(): Promise<ReviewCase[]> {
    const { persons } = this.#world
    const self = { who: 'reader', kind: 'SelfSubjectReview' }
    const { userInfo } = (JSON.parse((await this.#ask('direct', self)).slice(4)) as { status: { userInfo: UserInfo } })
      .status
    const { username: user, ...rest } = userInfo
    return [
      self,
      { who: 'node', kind: 'SelfSubjectReview' },
      { who: 'unmapped', kind: 'SelfSubjectReview' },
      { who: 'node', kind: 'SelfSubjectRulesReview', spec: { namespace: 'rights-a' } },
      ...[list, { ...list, name: 'c1' }, secret('s1')].map((attributes) => access('reader', attributes)),
      ...[secret('s1'), secret('s2'), mine].map((attributes) => access('node', attributes)),
      ...[secret('s1'), mine, theirs].map((attributes) => access('unmapped', attributes)),
      { who: 'reader', kind: 'SelfSubjectAccessReview', spec: {} },
      { who: 'node', kind: 'SubjectAccessReview', spec: { user, ...rest, resourceAttributes: list } },
      { who: 'node', kind: 'SubjectAccessReview', spec: { user, ...rest, resourceAttributes: secret('s1') } },
      { who: 'node', kind: 'TokenReview', spec: { token: persons.get('reader')?.token } },
    ]
  }

  async #ask(side: 'direct' | 'through', { who, kind, spec }: ReviewCase): Promise<string> {
    const group = groups[kind] ?? 'authorization.k8s.io'
    const path = `/apis/${group}/v1/${kind.toLowerCase()}s`
    const body = { apiVersion: `${group}/v1`, kind, ...(spec === undefined ? {} : { spec }) }
    const { status, body: said } = await this.#world[side](who).ask(path, { method: 'POST', body })
    return `${status} ${shape(said)}`
  }
}

type UserInfo = { readonly username: string }

const access = (who: string, resourceAttributes: object): ReviewCase => ({
  who,
  kind: 'SelfSubjectAccessReview',
  spec: { resourceAttributes },
})

function nameOf({ who, kind, spec }: ReviewCase): string {
  return `${who} ${kind} ${JSON.stringify(spec ?? '').slice(0, 200)}`
}

/** Members in any order, as they were sent; rules in any; times are of the moment; why something is allowed is not held. */
function shape(body: string): string {
  return JSON.stringify(sorted(JSON.parse(body)))
    .replace(/"(time|creationTimestamp)":"[^"]*"/g, '"$1":""')
    .replace(/("allowed":true),"reason":"(?:[^"\\]|\\.)*"/, '$1')
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, member]) => [key, isRules(key) ? unordered(member) : sorted(member)]))
}

function isRules(key: string): boolean {
  return key === 'resourceRules' || key === 'nonResourceRules'
}

function unordered(rules: unknown): string[] {
  return (sorted(rules) as unknown[]).map((rule) => JSON.stringify(rule)).sort()
}
