/**
 * How a hub says that a request is a node's. An API server that constrains impersonation (`impersonate:arbitrary-node`) takes the
 * name of the node alone, and adds the group of nodes itself; any other needs to be told the group, and would let the name
 * alone have no right of a node. Which it is shows in whom it takes a node's name for.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { Unreachable, type Upstream } from '../../upstream/upstream.ts'
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

export class NodeImpersonation {
  readonly #parts: Parts
  #namesGroup = true

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
    const groups = await this.#groups()
    if (groups === undefined) return false
    const namesGroup = !groups.includes('system:nodes')
    if (namesGroup !== this.#namesGroup) this.#parts.log.info('hub.impersonation', { constrained: !namesGroup })
    this.#namesGroup = namesGroup
    return true
  }

  /** Of a node that is named alone; none where that is refused. */
  async #groups(): Promise<readonly unknown[] | undefined> {
    const body = Buffer.from(JSON.stringify(review))
    const headers = { 'content-type': 'application/json', 'impersonate-user': someNode }
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
