/**
 * A cloud for tests: an API server that knows tokens and rules, answers reviews, counts them, and can be made to hang, to
 * fail or to be away; and records that survive a restart.
 */

import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { createLog, type Log } from '../base/log.ts'
import type { Caller } from '../kube/caller.ts'
import {
  type Identity,
  type ReachabilityState,
  Unreachable,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../upstream/upstream.ts'
import type { RecordChange, Records } from './access.ts'
import type { BoundObjects } from './authenticate/accounttoken.ts'
import { type OpenAccess, openAccess } from './open.ts'

type ReviewSpec = {
  /** Of whom, where it is not the caller itself. */
  readonly user?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Caller['extra']
  readonly resourceAttributes?: Readonly<Record<string, unknown>>
  readonly nonResourceAttributes?: Readonly<Record<string, unknown>>
}

export class FakeCloud implements Upstream {
  /** By token, or `certificate:NAME`. */
  readonly users = new Map<string, Caller>()
  /** By path: what the edge itself may read. */
  readonly documents = new Map<string, string>()
  allows: (caller: Caller, spec: ReviewSpec) => boolean = () => true
  reason = ''
  anonymousMayReview = false
  /** Whether the edge may ask about others. */
  edgeMayReview = true
  mode: 'answer' | 'hang' | 'silent' | 'break' | 'error' = 'answer'
  /** Whether probes are answered, whatever reviews are. */
  probes: () => boolean = () => this.mode === 'answer' || this.mode === 'error'
  /** Every review asked, as `subject USER` or `access USER JSON`. */
  readonly asked: string[] = []
  readonly specs: ReviewSpec[] = []
  readonly suspicions: string[] = []
  atOnce = 0
  atOnceMost = 0
  date: string | undefined
  #state: ReachabilityState = 'reachable'
  readonly #hanging: (() => void)[] = []
  readonly #listeners = new Set<(state: ReachabilityState) => void>()
  readonly reachability: Upstream['reachability']

  constructor() {
    const state = () => this.#state
    this.reachability = {
      get state() {
        return state()
      },
      why: '',
      sinceMs: 0,
      heardAt: 0,
      refusesEdge: false,
      limitMs: 300,
      suspect: (why) => {
        this.suspicions.push(why)
        if (this.#state === 'reachable') this.#state = 'suspect'
      },
      probe: async () => {
        const alive = this.probes()
        if (!alive && this.#state === 'reachable') this.#state = 'suspect'
        return alive
      },
      observe: (listener) => {
        this.#listeners.add(listener)
        return () => void this.#listeners.delete(listener)
      },
    }
  }

  set state(state: ReachabilityState) {
    this.#state = state
    for (const listener of this.#listeners) listener(state)
  }

  /** Lets everything that hangs go on, and says how much that was. */
  release(): number {
    const going = this.#hanging.splice(0)
    for (const go of going) go()
    return going.length
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    if (this.mode === 'break' || this.#state === 'unreachable') throw new Unreachable('refused', false)
    this.atOnceMost = Math.max(this.atOnceMost, ++this.atOnce)
    try {
      if (this.mode === 'silent') await aborted(asked.signal)
      // The API server decides when it is asked; a slow answer arrives late but is of that moment.
      const answer = this.#answer(asked)
      if (this.mode === 'hang') await new Promise<void>((resolve) => this.#hanging.push(resolve))
      return answer
    } finally {
      this.atOnce--
    }
  }

  #answer({ method, path, identity, body }: UpstreamRequest): UpstreamResponse {
    if (method === 'GET') {
      this.asked.push(`get ${path}`)
      const found = this.documents.get(path)
      return {
        status: found === undefined ? 403 : 200,
        headers: {},
        body: once(Buffer.from(found ?? '')),
        heardAt: () => 0,
      }
    }
    const { status, reply } = this.#reply(path, identity, JSON.parse(String(body)))
    const headers: Record<string, string> = this.date === undefined ? {} : { date: this.date }
    return { status, headers, body: once(Buffer.from(JSON.stringify(reply))), heardAt: () => 0 }
  }

  #reply(
    path: string,
    identity: UpstreamRequest['identity'],
    sent: { spec?: ReviewSpec },
  ): { status: number; reply: unknown } {
    if (this.mode === 'error') return { status: 503, reply: {} }
    const anonymous: Caller = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] }
    const key = identity.kind === 'token' ? identity.token : identity.kind === 'certificate' ? identity.name : ''
    const user = identity.kind === 'anonymous' ? anonymous : this.users.get(key)
    const spec = sent.spec ?? {}
    const subject = path.endsWith('/selfsubjectreviews')
    const of = path.endsWith('/subjectaccessreviews') ? ` of ${spec.user}` : ''
    this.asked.push(subject ? `subject ${user?.name}` : `access ${user?.name}${of}`)
    if (user === undefined) return { status: 401, reply: { kind: 'Status', code: 401 } }
    if (user === anonymous && !this.anonymousMayReview) return { status: 403, reply: { kind: 'Status', code: 403 } }
    if (subject) {
      const { name: username, ...rest } = user
      return { status: 201, reply: { status: { userInfo: { username, ...rest } } } }
    }
    this.specs.push(spec)
    if (of !== '' && !this.edgeMayReview) return { status: 403, reply: { kind: 'Status', code: 403 } }
    const { user: name = '', uid = '', groups = [], extra } = spec
    const other: Caller = { name, uid, groups, ...(extra && { extra }) }
    const allowed = this.allows(of === '' ? user : other, spec)
    return { status: 201, reply: { status: allowed ? { allowed } : { allowed, reason: this.reason } } }
  }

  connect(): Promise<never> {
    throw new Error('no upgrades here')
  }

  addresses(): [] {
    return []
  }

  async run(): Promise<void> {}
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Unreachable('given up', true))))
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

export class FakeRecords implements Records {
  readonly kept = new Map<string, RecordChange & { value: Buffer }>()
  /** Every value ever handed over. */
  readonly seen: string[] = []
  commits = 0
  full = false

  async records(kind: string): Promise<{ key: string; value: Buffer }[]> {
    return [...this.kept.values()].filter((record) => record.kind === kind)
  }

  async commit(batch: { synced: boolean; records: readonly RecordChange[] }): Promise<void> {
    if (this.full) throw new Error('no space left')
    this.commits++
    for (const { kind, key, value } of batch.records) {
      const place = `${kind}\n${key}`
      this.seen.push(`${place}\n${value}`)
      if (value === undefined) this.kept.delete(place)
      else this.kept.set(place, { kind, key, value })
    }
  }
}

export type Bench = OpenAccess & {
  readonly cloud: FakeCloud
  readonly records: FakeRecords
  readonly clock: FakeClock
  readonly lines: readonly string[]
  /** Ends this one in good order and opens the next on the same records. */
  restart(): Promise<Bench>
  /** The same without the good order. */
  crash(): Promise<Bench>
}

type Given = Partial<Pick<Bench, 'cloud' | 'records' | 'clock'>> & {
  readonly lines?: string[]
  readonly objects?: BoundObjects | undefined
  readonly audiences?: readonly string[]
  readonly opaqueMsMax?: number
  readonly takesTokens?: () => boolean
  readonly seen?: (identity: Identity, caller: Caller) => void
}

export async function openBench(given: Given = {}): Promise<Bench> {
  const {
    cloud = new FakeCloud(),
    records = new FakeRecords(),
    clock = fakeClock(),
    lines = [],
    objects,
    audiences = [],
    opaqueMsMax,
    takesTokens,
    seen,
  } = given
  const log: Log = createLog({ level: 'debug', write: (line) => lines.push(line) })
  const same = { cloud, records, clock, lines, objects, audiences }
  // What has crashed writes no more.
  let alive = true
  const own: Records = {
    records: (kind) => records.records(kind),
    commit: async (batch) => (alive ? records.commit(batch) : undefined),
  }
  const open = await openAccess({
    upstream: cloud,
    records: own,
    clock,
    log,
    audiences,
    ...(objects && { objects }),
    ...(opaqueMsMax && { opaqueMsMax: () => opaqueMsMax }),
    ...(takesTokens && { takesTokens }),
    ...(seen && { seen }),
  })
  return {
    ...open,
    ...same,
    async restart() {
      await open.run(AbortSignal.abort())
      alive = false
      return openBench(same)
    },
    async crash() {
      alive = false
      return openBench(same)
    },
  }
}

/** Lets promises run that wait for nothing but each other. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
}

export const alice: Caller = { name: 'alice', uid: 'u-1', groups: ['devs', 'system:authenticated'] }

export function makeJwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256' })}.${part(claims)}.c2lnbmF0dXJl`
}

export const aliceToken = { kind: 'token', token: 'secret-of-alice' } as const

export async function withAlice(): Promise<Bench> {
  const bench = await openBench()
  bench.cloud.users.set(aliceToken.token, alice)
  return bench
}
