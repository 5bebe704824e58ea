/**
 * How a hub says that a request is a node's. An API server that constrains impersonation (`impersonate:arbitrary-node`) takes the
 * name of the node alone, and adds the group of nodes itself; any other needs to be told the group, and would let the name
 * alone have no right of a node. Which it is shows in whom it takes a node's name for.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { type Headers, Unreachable, type Upstream } from '../../upstream/upstream.ts'
import { AnswerTooLarge, readWhole } from '../../upstream/whole.ts'

type Parts = { readonly upstream: Pick<Upstream, 'ask'>; readonly clock: Clock; readonly log: Log }

/** A role that is given, or an API server of another release, is noticed after this time. */
const lookEveryMs = 5 * 60_000
/** Where it could not be asked. */
const retryMs = 5_000
const answerMsMax = 5_000
const answerBytesMax = 64 * 1024

const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
/** It need not exist. */
const someNode = 'system:node:ake-hub'
const nodesGroup = 'system:nodes'
const unable =
  'the API server lets this hub act as no node, so that nothing of kubelets goes up: apply deploy/hub.yaml, and deploy/hub-legacy.yaml where it does not constrain impersonation (Kubernetes before 1.36)'

export class NodeImpersonation {
  readonly #parts: Parts
  #namesGroup = true
  #isUnable = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The API server constrains impersonation, and lets this hub be any node in that way. */
  get isConstrained(): boolean {
    return !this.#namesGroup
  }

  /** The group of nodes has to be named. */
  get namesGroup(): boolean {
    return this.#namesGroup
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const isKnown = await this.look()
      await sleep(this.#parts.clock, isKnown ? lookEveryMs : retryMs, signal)
    }
  }

  /** Whether it could be asked. */
  async look(): Promise<boolean> {
    const alone = await this.#groups({})
    if (alone === undefined) return false
    const namesGroup = !alone.includes(nodesGroup)
    if (namesGroup !== this.#namesGroup) this.#parts.log.info('hub.impersonation', { constrained: !namesGroup })
    this.#namesGroup = namesGroup
    const named = namesGroup ? await this.#groups({ 'impersonate-group': nodesGroup }) : alone
    if (named === undefined) return false
    this.#tell(!named.includes(nodesGroup))
    return true
  }

  /** Once, until it changes: kubelets hear no more than that something is forbidden to the hub. */
  #tell(isUnable: boolean): void {
    if (isUnable && !this.#isUnable) this.#parts.log.warn('hub.impersonation', { why: unable })
    this.#isUnable = isUnable
  }

  /** Whom it takes a node for; none where that is refused. */
  async #groups(more: Headers): Promise<readonly unknown[] | undefined> {
    const body = Buffer.from(JSON.stringify(review))
    const headers = { 'content-type': 'application/json', 'impersonate-user': someNode, ...more }
    try {
      const answer = await this.#parts.upstream.ask({
        ...{ method: 'POST', path, headers, body, identity: { kind: 'edge' }, headMsMax: answerMsMax },
      })
      const text = (await readWhole(answer, answerBytesMax)).toString()
      if (answer.status >= 500) return undefined
      return answer.status === 201 ? groupsIn(text) : []
    } catch (error) {
      if (error instanceof Unreachable || error instanceof AnswerTooLarge) return undefined
      throw error
    }
  }
}

function groupsIn(text: string): readonly unknown[] {
  try {
    const { status } = JSON.parse(text) as { status?: { userInfo?: { groups?: unknown } } }
    return Array.isArray(status?.userInfo?.groups) ? status.userInfo.groups : []
  } catch {
    return []
  }
}
