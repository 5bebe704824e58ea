/**
 * Tokens of service accounts, judged by a real API server and by the edge's verifier: the same verdict of the same token, and
 * the same caller. Objects are deleted, made again under the same name, and left to linger; keys are rotated and removed.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { issuer, type Signer, signToken } from '../../src/access/authenticate/tokens.test-support.ts'
import { Findings } from '../findings.ts'
import { ask, type Oracle, startOracle } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'
import { chooseSeed, seeded } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { type Claims, casesOf, mutated } from './claims.ts'
import { checkEdge } from './edge.ts'
import { Judges } from './judges.ts'

const space = 'tokens'
const core = `/api/v1/namespaces/${space}`
const generated = 300
/** Moments, even on a busy machine. */
const watchLagMs = 2_000
/** kube-apiserver lets an object that is being deleted count for a minute. */
const lingeringMs = 61_000

export const step: Step = {
  name: 'tokens',
  tier: 'default',
  minutes: 3,
  async run(context: StepContext): Promise<StepResult> {
    const findings = new Findings()
    const oracle = await startOracle({ ...context, dir: join(context.dir, 'oracle') })
    try {
      await findings.part('edge', () => checkEdge(context, oracle, findings))
      await new Matrix(oracle, findings, chooseSeed({ all: context.all, gate: 20_261 })).run()
    } finally {
      oracle.stop()
    }
    return findings.result
  },
}

class Matrix {
  readonly #oracle: Oracle
  readonly #findings: Findings
  readonly #judges: Judges
  readonly #make: ReturnType<typeof creatorOf>
  readonly #keyFile: string
  readonly #seed: number
  readonly #uids = new Map<string, string>()

  constructor(oracle: Oracle, findings: Findings, seed: number) {
    this.#seed = seed
    this.#oracle = oracle
    this.#findings = findings
    this.#judges = new Judges(oracle)
    this.#make = creatorOf(oracle)
    this.#keyFile = join(oracle.dir, 'accounts.key')
  }

  async run(): Promise<void> {
    const findings = this.#findings
    await this.#populate()
    await this.#judges.learn()
    const lingering = await this.#linger()
    await findings.part('claims', () => this.#claims())
    await findings.part('generated', () => this.#generated())
    await findings.part('bound', () => this.#bound())
    await findings.part('in Secrets', () => this.#legacy())
    await findings.part('keys', () => this.#rotate())
    await findings.part('lingering', () => this.#lingered(lingering))
  }

  async #populate(): Promise<void> {
    await this.#make('/api/v1/namespaces', { metadata: { name: space } })
    await this.#object('/api/v1/nodes', 'tokens-n1')
    for (const name of ['till', 'short', 'again', 'lingering']) await this.#object(`${core}/serviceaccounts`, name)
  }

  /** The uid is remembered by name. */
  async #object(path: string, name: string, rest: object = {}): Promise<void> {
    const { metadata } = await this.#make(path, { metadata: { name }, ...rest })
    this.#uids.set(name, metadata.uid)
  }

  async #pod(name: string, account = 'till', nodeName: string | undefined = 'tokens-n1'): Promise<void> {
    const containers = [{ name: 'main', image: 'none' }]
    const spec = { serviceAccountName: account, containers, ...(nodeName === '' ? {} : { nodeName }) }
    await this.#object(`${core}/pods`, name, { spec })
  }

  async #remove(path: string): Promise<void> {
    const { status, body } = await ask(this.#oracle, path, { method: 'DELETE' })
    if (status !== 200 && status !== 202) throw new Error(`DELETE ${path}: ${status} ${body}`)
  }

  #token(account: string, kind?: string, name = '', audiences: readonly string[] = []): Promise<string> {
    const boundObjectRef = { kind, apiVersion: 'v1', name, uid: this.#uids.get(name) }
    return this.#oracle.tokenFor(space, account, { audiences, ...(kind === undefined ? {} : { boundObjectRef }) })
  }

  get #signer(): Signer {
    const privateKey = createPrivateKey(readFileSync(this.#keyFile))
    return { id: '', algorithm: 'RS256', privateKey, publicKey: createPublicKey(privateKey) }
  }

  /** Claims as the API server makes them now, and the name of its key. */
  async #good(): Promise<{ claims: Claims; keyId: string }> {
    const [head, body] = (await this.#token('till')).split('.').map((part) => Buffer.from(part, 'base64url').toString())
    return { claims: JSON.parse(body ?? '') as Claims, keyId: (JSON.parse(head ?? '') as { kid: string }).kid }
  }

  async #claims(): Promise<void> {
    const { claims, keyId } = await this.#good()
    const signer = { ...this.#signer, id: keyId }
    for (const { what, expected, header, mayDiffer, ...one } of casesOf(claims, { issuer, keyId })) {
      const token = signToken(signer, one.claims, header ?? {})
      const verdict = await this.#judges.compare(this.#findings, what, token, { mayDiffer })
      this.#findings.equal(verdict, expected, what)
    }
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const forged = signToken({ ...signer, privateKey, publicKey }, claims)
    const verdict = await this.#judges.compare(this.#findings, 'another key under the same name', forged)
    this.#findings.equal(verdict, 'refused', 'another key under the same name')
  }

  async #generated(): Promise<void> {
    const seed = this.#seed
    const random = seeded(seed)
    const { claims, keyId } = await this.#good()
    const signer = { ...this.#signer, id: keyId }
    const found = { caller: 0, refused: 0, undecided: 0, differs: 0 }
    for (let at = 0; at < generated; at++) {
      const odd = mutated(claims, random)
      const what = `seed ${seed}, ${at}: ${JSON.stringify(odd)}`
      found[await this.#judges.compare(this.#findings, what, signToken(signer, odd))]++
    }
    this.#findings.note(`generated: ${JSON.stringify(found)}`)
  }

  /** Each token is shown only once it is as it is to be judged. */
  async #bound(): Promise<void> {
    await this.#object(`${core}/secrets`, 'anchor')
    await this.#pod('p1')
    await this.#pod('p2')
    await this.#pod('p3')
    await this.#pod('waiting', 'till', '')
    const good = [
      ['of an account', await this.#token('till')],
      ['of a pod', await this.#token('till', 'Pod', 'p1')],
      ['of a pod without a node', await this.#token('till', 'Pod', 'waiting')],
      ['of a secret', await this.#token('till', 'Secret', 'anchor')],
      ['of a node', await this.#token('till', 'Node', 'tokens-n1')],
      ['for two audiences', await this.#token('till', undefined, '', ['vault', issuer])],
    ] as const
    for (const [what, token] of good) await this.#expect(what, token, 'caller')
    await this.#expect('for another audience', await this.#token('till', undefined, '', ['vault']), 'undecided')
    const deleted = [
      ['of a deleted account', await this.#token('short')],
      ['of an account under another uid', await this.#token('again')],
      ['of a deleted pod', await this.#token('till', 'Pod', 'p1')],
      ['of a pod under another uid', await this.#token('till', 'Pod', 'p2')],
      ['of a deleted secret', await this.#token('till', 'Secret', 'anchor')],
      ['of a deleted node', await this.#token('till', 'Node', 'tokens-n1')],
    ] as const
    const ending = await this.#token('till', 'Pod', 'p3')
    await this.#remove(`${core}/pods/p3?gracePeriodSeconds=30`)
    await this.#expect('of a pod that is being deleted', ending, 'caller')
    for (const one of ['serviceaccounts/short', 'serviceaccounts/again', 'secrets/anchor'])
      await this.#remove(`${core}/${one}`)
    for (const one of ['p1', 'p2']) await this.#remove(`${core}/pods/${one}?gracePeriodSeconds=0`)
    await this.#remove('/api/v1/nodes/tokens-n1')
    await this.#object(`${core}/serviceaccounts`, 'again')
    await this.#pod('p2', 'till', '')
    for (const [what, token] of deleted) await this.#expect(what, token, 'refused')
  }

  /** No controller runs here that would fill a Secret. */
  async #legacy(): Promise<void> {
    const signed = (name: string) =>
      signToken(
        this.#signer,
        {
          iss: 'kubernetes/serviceaccount',
          sub: `system:serviceaccount:${space}:till`,
          'kubernetes.io/serviceaccount/namespace': space,
          'kubernetes.io/serviceaccount/secret.name': name,
          'kubernetes.io/serviceaccount/service-account.name': 'till',
          'kubernetes.io/serviceaccount/service-account.uid': this.#uids.get('till'),
        },
        { kid: undefined },
      )
    const keep = async (name: string, token: string, labels: object = {}) => {
      const annotations = { 'kubernetes.io/service-account.name': 'till' }
      const secret = { metadata: { name, annotations, labels }, type: 'kubernetes.io/service-account-token' }
      await this.#make(`${core}/secrets`, { ...secret, stringData: { token } })
      return token
    }
    await this.#expect('kept in a Secret', await keep('kept', signed('kept')), 'caller')
    await keep('changed', 'another')
    await this.#expect('of which the Secret holds another', signed('changed'), 'refused')
    const since = { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' }
    await this.#expect('marked invalid', await keep('marked', signed('marked'), since), 'refused')
    await this.#expect('of a Secret that never was', signed('never'), 'refused')
    const removed = await keep('removed', signed('removed'))
    await this.#remove(`${core}/secrets/removed`)
    // The API server hears of it through a watch of its own: what it accepts before that, it accepts for ten seconds more.
    await pause(watchLagMs)
    await this.#expect('of a deleted Secret', removed, 'refused')
  }

  /** A second key signs, then the first is taken away. */
  async #rotate(): Promise<void> {
    const old = readFileSync(this.#keyFile, 'utf8')
    const tokens = [await this.#token('till'), await this.#token('till')] as const
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const fresh = pem(privateKey)
    await this.#sign(`${fresh}${old}`)
    await this.#expect('signed with the key before', tokens[0], 'caller')
    await this.#expect('signed with the new key', await this.#token('till'), 'caller')
    await this.#sign(fresh)
    await this.#expect('signed with a key that was removed', tokens[1], 'undecided')
    await this.#expect('signed with the only key', await this.#token('till'), 'caller')
  }

  async #sign(keys: string): Promise<void> {
    writeFileSync(this.#keyFile, keys)
    await this.#oracle.restart({ only: ['apiserver'] })
    await this.#judges.learn()
  }

  /** Deleted, and kept by a finalizer. */
  async #linger(): Promise<{ token: string; sinceMs: number }> {
    const finalizers = ['tokens.example.com/kept']
    const [early, token] = [
      await this.#lingeringPod('lingering-1', finalizers),
      await this.#lingeringPod('lingering-2', finalizers),
    ]
    await this.#expect('of a pod that lingers for less than a minute', early, 'caller')
    return { token, sinceMs: Date.now() }
  }

  async #lingeringPod(name: string, finalizers: readonly string[]): Promise<string> {
    const spec = { serviceAccountName: 'till', containers: [{ name: 'main', image: 'none' }] }
    const { metadata } = await this.#make(`${core}/pods`, { metadata: { name, finalizers }, spec })
    this.#uids.set(name, metadata.uid)
    const token = await this.#token('till', 'Pod', name)
    await this.#remove(`${core}/pods/${name}?gracePeriodSeconds=0`)
    return token
  }

  /** The key that signed it went meanwhile: it is shown again, signed with the one of now. */
  async #lingered({ token, sinceMs }: { token: string; sinceMs: number }): Promise<void> {
    await pause(Math.max(0, sinceMs + lingeringMs - Date.now()))
    const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
    const signer = { ...this.#signer, algorithm: 'ES256' }
    await this.#expect('of a pod that lingers for more', signToken(signer, claims, { kid: undefined }), 'refused')
  }

  async #expect(what: string, token: string, expected: 'caller' | 'refused' | 'undecided'): Promise<void> {
    this.#findings.equal(await this.#judges.compare(this.#findings, what, token), expected, what)
  }
}

function pem(key: KeyObject): string {
  return key.export({ type: 'sec1', format: 'pem' }).toString()
}
