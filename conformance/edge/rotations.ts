/**
 * Certificates and keys that are renewed under an edge and its callers while everything goes on: the edge's own certificate, the
 * one of a caller and the credential that goes upstream for it, the edge's serving certificate, and the key with which the
 * API server signs tokens. No client lists again, and no request of the two callers fails.
 */
import { createHash, createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import { type Person, Seat } from '../asking.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import type { Oracle } from '../oracle.ts'
import { makeClient } from '../pki.ts'
import { creatorOf } from '../rights/objects.ts'
import { type Edge, type Site, untilReachable } from '../site.ts'

const name = 'rotated'
const space = 'rotated'
const lists = '/api/v1/namespaces/churn-1/configmaps?resourceVersion=0'
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const askEveryMs = 100
const faultsMax = 20
/** A file is read again within seconds, on a busy machine. */
const noticedMsMax = 60_000

/** Reads all the time in its own name, and is never refused: not by 401 or 403, nor because the edge does not know. */
class RotatedCaller {
  readonly faults: string[] = []
  readonly #kind: string
  readonly #edge: Edge
  #person: Person
  #isJudged = true
  #answers = 0
  #broken = 0

  constructor(kind: string, edge: Edge, person: Person) {
    this.#kind = kind
    this.#edge = edge
    this.#person = person
  }

  get figures(): string {
    return `caller with a ${this.#kind}: ${this.#answers} answers, ${this.#broken} connections broke`
  }

  renew(person: Person): void {
    this.#person = person
  }

  /** A token of a key that the edge has not heard of is shown while the cloud is there: first shown without it, it would be nobody's. */
  async begin(person: Person): Promise<void> {
    const wrong = await this.#ask(person)
    if (wrong !== undefined) throw new Error(`the first request with a new ${this.#kind}: ${wrong}`)
    this.#person = person
  }

  /** In another cluster, or in one that is set back, its credential may be anybody's. */
  async excused(body: () => Promise<void>): Promise<void> {
    this.#isJudged = false
    await body()
    const isServed = async () => (await this.#ask().catch(() => undefined)) === undefined
    await until(isServed, `the caller with a ${this.#kind} is served again`, {
      withinMs: noticedMsMax,
      everyMs: askEveryMs,
    })
    this.#isJudged = true
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { restarts } = this.#edge
      const isJudged = this.#isJudged
      try {
        const wrong = await this.#ask()
        if (wrong !== undefined && isJudged && this.#isJudged) this.#fault(wrong)
      } catch (error) {
        this.#broken++
        // A connection breaks when the edge is ended; one that runs answers.
        const isLate = error instanceof Error && /^no (answer|end)/.test(error.message)
        if (isLate && restarts === this.#edge.restarts && isJudged && this.#isJudged) this.#fault(error.message)
      }
      await pause(askEveryMs, undefined, { signal }).catch(() => {})
    }
  }

  /** Over a connection of its own each time: what a caller is, is looked at anew. */
  async #ask(person = this.#person): Promise<string | undefined> {
    const seat = new Seat(this.#edge.ake, person)
    try {
      const { status, body } = await seat.ask(lists)
      this.#answers++
      return status === 200 ? undefined : `${status} ${body.slice(0, 500)}`
    } finally {
      seat.close()
    }
  }

  #fault(text: string): void {
    if (this.faults.length < faultsMax)
      this.faults.push(`${new Date().toISOString()} the caller with a ${this.#kind}: ${text}`)
  }
}

export type Rotation = { readonly name: string; run(): Promise<void> }

export class Rotations {
  readonly #site: Site
  readonly #pointed: string
  readonly #edge: Edge
  readonly #certified: RotatedCaller
  readonly #bearer: RotatedCaller
  readonly #keyFile: string
  #next = 0
  #made = 0

  constructor({ site, pointed, edge, persons }: { site: Site; pointed: string; edge: Edge; persons: Persons }) {
    this.#site = site
    this.#pointed = pointed
    this.#edge = edge
    this.#certified = new RotatedCaller('certificate', edge, persons.certified)
    this.#bearer = new RotatedCaller('token', edge, persons.bearer)
    this.#keyFile = join(site.oracle.dir, 'accounts.key')
  }

  get callers(): readonly RotatedCaller[] {
    return [this.#certified, this.#bearer]
  }

  async excused(body: () => Promise<void>): Promise<void> {
    await this.#certified.excused(() => this.#bearer.excused(body))
  }

  /** One after the other, and from the first again. */
  get next(): Rotation {
    const all: readonly Rotation[] = [
      { name: 'the API server signs tokens with another key', run: () => this.#sign() },
      { name: 'a caller has another certificate', run: () => this.#certify() },
      { name: 'the API server forgets its key of before', run: () => this.#forget() },
      { name: 'the edge has another certificate', run: () => this.#point() },
      { name: 'the edge serves with another certificate', run: () => this.#serve() },
    ]
    const { name, run } = all[this.#next++ % all.length]!
    return {
      name,
      run: async () => {
        await untilReachable(this.#site, true, noticedMsMax)
        await run()
      },
    }
  }

  /** Both keys count, as the operator of a cluster begins it; the caller's next token is signed with the new one. */
  async #sign(): Promise<void> {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const fresh = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    await this.#restartWith(`${fresh}${newestKey(this.#keyFile)}`)
  }

  async #forget(): Promise<void> {
    await this.#restartWith(newestKey(this.#keyFile))
  }

  async #restartWith(keys: string): Promise<void> {
    writeFileSync(this.#keyFile, keys)
    await this.#site.oracle.restart({ only: ['apiserver'] })
    await untilReachable(this.#site, true, noticedMsMax)
    await this.#bearer.begin({ token: await this.#site.oracle.tokenFor(space, name) })
  }

  async #certify(): Promise<void> {
    const person = await this.#site.oracle.userCredential(name)
    await this.#untilSeenAs(person, person.cert)
    this.#certified.renew(person)
  }

  async #point(): Promise<void> {
    const { oracle, link } = this.#site
    const file = `admin-${++this.#made}`
    await makeClient(oracle.dir, { file, user: 'admin', groups: ['system:masters'] })
    const [cert, key] = ['crt', 'key'].map((end) => readFileSync(join(oracle.dir, `${file}.${end}`), 'utf8'))
    await writeKubeconfig(`${this.#pointed}.next`, { ca: oracle.ca, cert: cert!, key: key!, url: link.url })
    renameSync(`${this.#pointed}.next`, this.#pointed)
    await this.#untilSeenAs(this.#edge.ake, cert!)
  }

  /** While it is down: it makes another at its start. */
  async #serve(): Promise<void> {
    const served = (dir: string) => join(dir, 'pki', 'serving.crt')
    let before = ''
    let file = ''
    await this.#edge.restart('orderly', (dir) => {
      file = served(dir)
      before = readFileSync(file, 'utf8')
      for (const end of ['crt', 'key']) rmSync(join(dir, 'pki', `serving.${end}`))
    })
    if (readFileSync(file, 'utf8') === before) throw new Error('the edge serves with the certificate of before')
  }

  /** The API server itself says by which certificate it knows who asks. */
  async #untilSeenAs(person: Person, cert: string): Promise<void> {
    const digest = createHash('sha256').update(new X509Certificate(cert).raw).digest('hex')
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const isSeen = async () => {
      const seat = new Seat(this.#edge.ake, person)
      const told = await seat.ask(review, { method: 'POST', body }).catch(() => undefined)
      seat.close()
      return told?.body.includes(`X509SHA256=${digest}`)
    }
    await until(isSeen, 'the API server knows the caller by its new certificate', {
      withinMs: noticedMsMax,
      everyMs: askEveryMs,
      signal: this.#site.signal,
    })
  }
}

type Persons = { readonly certified: Person; readonly bearer: Person }

/** What the two callers need in the cluster, and the edge for the one with a certificate. */
export async function prepareRotations(oracle: Oracle): Promise<{ args: readonly string[]; persons: Persons }> {
  const make = creatorOf(oracle)
  await make('/api/v1/namespaces', { metadata: { name: space } })
  await make(`/api/v1/namespaces/${space}/serviceaccounts`, { metadata: { name } })
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
  await make(`${rbac}/clusterroles`, { metadata: { name }, rules })
  const apiGroup = 'rbac.authorization.k8s.io'
  await make(`${rbac}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: [
      { kind: 'User', name, apiGroup },
      { kind: 'ServiceAccount', name, namespace: space },
    ],
  })
  const certified = await oracle.userCredential(name)
  const bearer = { token: await oracle.tokenFor(space, name) }
  const credential = `${name}=${certified.certFile},${certified.keyFile}`
  const known = ['--client-ca', join(oracle.dir, 'ca.crt'), '--client-credential', credential]
  return { args: [...known, '--mirror', `serviceaccounts@${space}`], persons: { certified, bearer } }
}

/** The one that signs. */
function newestKey(file: string): string {
  return createPrivateKey(readFileSync(file)).export({ type: 'pkcs8', format: 'pem' }).toString()
}
