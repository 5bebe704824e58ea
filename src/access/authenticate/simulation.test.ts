/**
 * Pods that come and go, keys that rotate, a mirror that lags or falls out of step, a line that is cut: no token opens anything
 * longer than half a minute after the API server would have refused it, and every one that it would take does.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chanceOf } from '../../base/seeded.test-support.ts'
import { fromPlain } from '../../kube/json/json.ts'
import { type Bench, FakeCloud, openBench, settle } from '../access.test-support.ts'
import { makeQuestion } from '../question.ts'
import { accountCaller } from './accounttoken.ts'
import { issuer, jwksOf, makeSigner, podClaims, type Signer, signToken } from './tokens.test-support.ts'

const pods = makeQuestion({ verb: 'list', resource: 'pods', namespace: 'shop' })
const steps = 600
const lagMsMax = 4_000
const validMs = 30_000
const signers = Array.from({ length: 4 }, () => makeSigner())

type Shown = { readonly token: string; readonly pod: string; readonly uid: string; readonly signer: Signer }

class Model {
  readonly cloud = new FakeCloud()
  /** By name: the uid in the cluster, and in the copy; '' for none. */
  readonly pods = new Map<string, string>()
  readonly copied = new Map<string, string>()
  readonly tokens: Shown[] = []
  readonly invalidSince = new Map<string, number>()
  readonly next: () => number
  keys: Signer[] = [signers[0] as Signer]
  /** What the copy has not heard, while it is out of step. */
  waiting: (() => void)[] | undefined
  bench!: Bench
  made = 0
  opened = { online: 0, offline: 0, saved: 0 }

  constructor(seed: number) {
    this.next = chanceOf(seed)
  }

  async open(): Promise<void> {
    this.publish()
    const find = (kind: string, _namespace: string, name: string) => {
      const uid = kind === 'Pod' ? this.copied.get(name) : 'account-uid'
      const isLate = this.waiting !== undefined && this.isOnline
      if (uid === undefined || isLate) return 'unknown'
      return uid === '' ? 'absent' : { uid, deletionMs: undefined, read: () => fromPlain({}) }
    }
    this.bench = await openBench({ cloud: this.cloud, objects: { find } })
    await this.bench.accounts?.refresh()
    for (const name of ['p0', 'p1', 'p2']) this.change(name, `uid-${this.made++}`)
  }

  get isOnline(): boolean {
    return this.cloud.reachability.state === 'reachable'
  }

  publish(): void {
    this.cloud.documents.set('/.well-known/openid-configuration', JSON.stringify({ issuer }))
    this.cloud.documents.set('/openid/v1/jwks', jwksOf(...this.keys))
  }

  /** In the cluster now, in the copy soon, or when that is in step again. */
  change(pod: string, uid: string): void {
    this.pods.set(pod, uid)
    const arrive = () => {
      this.copied.set(pod, uid)
      this.bench.accounts?.doubt()
    }
    this.bench.clock.setTimer(this.next() * lagMsMax, () => {
      if (this.waiting === undefined) arrive()
      else this.waiting.push(arrive)
    })
    this.judgeAll()
  }

  /** As the API server sees each token now. */
  judgeAll(): void {
    for (const { token, pod, uid, signer } of this.tokens) {
      const isValid = this.pods.get(pod) === uid && this.keys.includes(signer)
      if (isValid || this.invalidSince.has(token)) continue
      this.invalidSince.set(token, this.bench.clock.steady())
      this.cloud.users.delete(token)
    }
  }

  issue(): void {
    const [pod, uid] = this.of([...this.pods])
    if (uid === '') return
    const signer = this.keys[0] as Signer
    const now = Math.floor(this.bench.clock.now() / 1000)
    const jti = `t-${this.made++}`
    const account = { name: 'till', uid: 'account-uid' }
    const own = { namespace: 'shop', serviceaccount: account, pod: { name: pod, uid } }
    const claims = podClaims(now * 1000, { jti, exp: now + 86_400, 'kubernetes.io': own })
    const token = signToken(signer, claims)
    this.tokens.push({ token, pod, uid, signer })
    this.cloud.users.set(
      token,
      accountCaller({ namespace: 'shop', account, pod: { name: pod, uid }, node: undefined, id: jti }),
    )
  }

  async show(): Promise<void> {
    if (this.tokens.length === 0) return
    const shown = this.of(this.tokens)
    const { token, pod, uid } = shown
    const before = this.cloud.asked.length
    const verdict = await this.bench.access.decide({ kind: 'token', token }, pods)
    await settle()
    const since = this.invalidSince.get(token)
    if (this.isOnline) {
      const ageMs = this.bench.clock.steady() - (since ?? Number.POSITIVE_INFINITY)
      if (verdict === 'allowed') assert.ok(ageMs <= validMs, `it was refused ${ageMs} ms ago`)
      // What is not known goes on to the API server.
      else assert.ok(verdict === 'unknown' || since !== undefined, `${verdict}: the API server takes it`)
      if (verdict === 'allowed') this.opened.online++
      if (!this.cloud.asked.slice(before).some((one) => one.startsWith('subject'))) this.opened.saved++
      return
    }
    if (verdict !== 'allowed') return
    assert.equal(this.copied.get(pod) ?? uid, uid, 'its pod is known to be gone')
    this.opened.offline++
  }

  async step(): Promise<void> {
    const choice = this.next()
    if (choice < 0.2) this.issue()
    else if (choice < 0.3) this.change(this.of([...this.pods.keys()]), this.next() < 0.3 ? '' : `uid-${this.made++}`)
    else if (choice < 0.33) this.rotate()
    else if (choice < 0.38) this.fallOut()
    else if (choice < 0.44) this.catchUp()
    else if (choice < 0.47) this.cloud.state = this.isOnline ? 'unreachable' : 'reachable'
    else if (choice < 0.6) this.bench.clock.advance(this.next() * 9_000)
    else await this.show()
    if (!this.isOnline) this.fallOut()
    await settle()
  }

  /** The new key signs; the one before may stay for a while. */
  rotate(): void {
    const fresh = this.of(signers)
    const isKnown = this.keys.includes(fresh) || this.tokens.some(({ signer }) => signer === fresh)
    if (isKnown && this.next() < 0.5) this.keys = this.keys.slice(0, 1)
    else if (!isKnown) this.keys = [fresh, ...this.keys.slice(0, 1)]
    this.publish()
    this.judgeAll()
  }

  fallOut(): void {
    this.waiting ??= []
  }

  catchUp(): void {
    if (!this.isOnline) return
    for (const arrive of this.waiting ?? []) arrive()
    this.waiting = undefined
  }

  of<T>(all: readonly T[]): T {
    return all[Math.floor(this.next() * all.length)] as T
  }
}

for (let seed = 1; seed <= 6; seed++) {
  test(`[I1] [I5] no token opens anything for long that the API server would refuse (seed ${seed})`, async () => {
    const model = new Model(seed)
    await model.open()
    for (let at = 0; at < steps; at++) await model.step()
    assert.deepEqual(
      model.bench.lines.filter((line) => line.includes('access.tokens.differ')),
      [],
    )
    const { online, offline, saved } = model.opened
    assert.ok(online + offline > 10 && saved > 5, JSON.stringify(model.opened))
  })
}
