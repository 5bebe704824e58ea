/** Certificates and authorities over a link: a hub's side and an edge's, with streams in memory between them. */
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { issuedAtOf, type KeyPair, pemsIn, vouchedAtOf } from '../../pki/certificate.ts'
import { credentialText, parseCredential } from '../../pki/credentialfile.ts'
import { signerOf } from '../../pki/verdict.ts'
import {
  decodeRenewalAnswer,
  encodeRenewal,
  proofOf,
  type RenewalAnswer,
  renewalPurpose,
  takeSaid,
} from '../../tunnel/identity/identity.ts'
import { TunnelPair } from '../../tunnel/pair.test-support.ts'
import { requestPurpose } from '../../tunnel/request/request.ts'
import { rulesPurpose } from '../../tunnel/rules/rules.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import { ClusterCaFile } from '../../upstream/linked/clustercafile.ts'
import type { EdgeLink } from '../../upstream/linked/edgelink.ts'
import { FollowedHubCredential } from '../../upstream/linked/hubcredential.ts'
import { CredentialRenewal, type renewalLimits } from '../../upstream/linked/renewal.ts'
import { revocationOf } from '../policy/revocation.ts'
import type { EdgePeer } from '../sockets/edgepeer.ts'
import { authoritiesOf, withCompromised, withNext, withoutOld, withSwitched } from '../state/authorities.ts'
import { edgePair } from '../state/certificates.ts'
import { makeState } from '../state/state.ts'
import { EdgeIdentities, retirementOf } from './identities.ts'

const root = mkdtempSync(join(tmpdir(), 'ake-identities-'))
after(() => rmSync(root, { recursive: true, force: true }))
const day = 24 * 3_600_000
const start = Date.UTC(2026, 5, 1)
let count = 0

function peerOf(state: ReturnType<typeof makeState>, { cert }: KeyPair, signer: 'hub' | 'cluster' = 'hub'): EdgePeer {
  const certificate = new X509Certificate(cert)
  const { serialNumber: serial, fingerprint256: fingerprint, validToDate } = certificate
  const authorities = authoritiesOf(state).map((one) => one.certificate)
  const authority = signerOf(certificate, authorities)?.fingerprint256 ?? ''
  const issuedAtMs = issuedAtOf(serial) ?? 0
  const times = { issuedAtMs, vouchedAtMs: vouchedAtOf(serial) ?? 0, endsAtMs: validToDate.getTime() }
  const known = { serial, fingerprint, signer, authority, ...times }
  return { name: 'n1', certificate: known, resumed: false, from: '10.0.0.1' }
}

class World {
  readonly clock = fakeClock(start)
  readonly lines: string[] = []
  readonly path = join(root, `${count++}.pem`)
  readonly identities: EdgeIdentities
  state = makeState(start)
  clusterAuthorities: readonly X509Certificate[] = []
  revoked: string | undefined
  pair: TunnelPair
  peer: EdgePeer
  left: string[] = []
  /** Streams that its hub takes and does not answer. */
  readonly open = new Set<string>()
  readonly ending = new AbortController()
  readonly #log = createLog({ level: 'info', write: (line) => void this.lines.push(line) })

  constructor() {
    const parts = { state: () => this.state, revoked: () => this.revoked, clock: this.clock, log: this.#log }
    this.identities = new EdgeIdentities({ ...parts, clusterAuthorities: () => this.clusterAuthorities })
    const pair = edgePair(this.state, 'n1', start)
    writeFileSync(this.path, credentialText({ ca: this.state.ca.cert, pair, title: '' }))
    this.peer = peerOf(this.state, pair)
    this.pair = this.linked()
  }

  linked(): TunnelPair {
    const refuse = ({ stream, purpose }: IncomingStream) => {
      if (!this.open.has(purpose)) stream.giveUp('unknown', 'not taken here')
    }
    return new TunnelPair({ hubAccepts: (incoming) => this.identities.acceptFor(this.peer, refuse)(incoming) })
  }

  async edge(limits: Partial<typeof renewalLimits> = {}) {
    const { clock } = this
    const credential = await FollowedHubCredential.open({ path: this.path, clock, log: this.#log })
    const current = { streams: this.pair.edge, leave: () => undefined }
    const handOver = () => Promise.resolve(this.left.push('handed over') > 0)
    const link = { current, observe: () => () => undefined, handOver } as unknown as EdgeLink
    const parts = { link, credential, clock, now: () => clock.now(), log: this.#log, random: () => 0.5, limits }
    const renewal = new CredentialRenewal(parts)
    void renewal.run(this.ending.signal)
    return credential
  }

  /** What is kept is written to a file first, which takes as long as the disk does. */
  async until(holds: () => boolean): Promise<void> {
    await until(holds)
  }

  async pass(ms: number, everyMs = 60_000): Promise<void> {
    for (let at = 0; at < ms; at += everyMs) {
      this.clock.advance(everyMs)
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    }
  }

  async ask(key: Buffer, proof: Buffer): Promise<RenewalAnswer> {
    const stream = this.pair.edge.open({ purpose: renewalPurpose })
    assert.ok(stream)
    stream.end(encodeRenewal({ key, proof }))
    return decodeRenewalAnswer(await takeSaid(stream))
  }

  [Symbol.dispose](): void {
    this.ending.abort()
  }
}

function fresh(curve = 'P-256'): { readonly key: Buffer; readonly privateKey: KeyObject } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: curve })
  return { privateKey, key: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }) }
}

test('[L31] an edge hears of each step of a rotation, keeps it, and has a certificate of the new authority before the old one is retired', async () => {
  using world = new World()
  const credential = await world.edge()
  const hashes = () => credential.current.authorities.map(({ fingerprint256 }) => fingerprint256)
  const trusted = () => authoritiesOf(world.state).map(({ certificate }) => certificate.fingerprint256)
  const before = credential.current.certificate.fingerprint256
  const step = async (next: typeof world.state) => {
    world.state = next
    world.identities.changed()
    await world.until(() => hashes().join() === trusted().join())
    assert.equal(parseCredential(readFileSync(world.path, 'utf8'), '').authorities.length, trusted().length)
  }
  await world.pass(1_000, 1_000)
  await step(withNext(world.state, start))
  await world.pass(3_600_000)
  assert.equal(credential.current.certificate.fingerprint256, before)
  await step(withSwitched(world.state, start))
  // All edges of a hub do not ask at once.
  await world.pass(240_000)
  assert.equal(credential.current.certificate.fingerprint256, before)
  await world.pass(240_000)
  await world.until(() => credential.current.certificate.fingerprint256 !== before)
  assert.equal(signerOf(credential.current.certificate, credential.current.authorities)?.fingerprint256, trusted()[0])
  await world.pass(3_000, 1_000)
  assert.equal(world.left[0], 'handed over')
  const { fingerprint256 } = credential.current.certificate
  await step(withoutOld(world.state))
  await world.pass(3_600_000)
  assert.equal(credential.current.certificate.fingerprint256, fingerprint256, 'once is enough')
  assert.deepEqual(world.identities.counts, { renewed: 1, refused: 0 })
  assert.doesNotMatch(world.lines.join(), /PRIVATE|BEGIN/)
})

test('a certificate is renewed at three quarters of its life, and a hub that says no is asked again after a while', async () => {
  using world = new World()
  const credential = await world.edge({ lookEveryMs: 6 * 3_600_000 })
  const before = credential.current.certificate.fingerprint256
  world.revoked = 'it was revoked'
  await world.pass(545 * day, day)
  assert.equal(world.identities.counts.refused, 0)
  await world.pass(10 * day, day)
  assert.ok(world.identities.counts.refused > 0)
  assert.match(world.lines.join(), /hub\.renewal .*the hub refuses: it was revoked/)
  world.revoked = undefined
  await world.pass(day, 6 * 3_600_000)
  await world.until(() => credential.current.certificate.fingerprint256 !== before)
  assert.equal((issuedAtOf(credential.current.certificate.serialNumber) as number) > start + 545 * day, true)
})

test('[L31] an edge moves to a link with its new certificate though it is told of callers all the time, and does not wait for the end of the old one where something runs', async () => {
  for (const [purpose, days] of [
    [rulesPurpose, 0],
    [requestPurpose, 60],
  ] as const) {
    using world = new World()
    world.open.add(purpose)
    const credential = await world.edge({ lookEveryMs: 6 * 3_600_000, idleMsMax: 400 * day, idleLookMs: 3_600_000 })
    const before = credential.current.certificate
    const stream = world.pair.edge.open({ purpose })
    stream?.write('x')
    await world.pass(540 * day, day)
    assert.equal(credential.current.certificate.fingerprint256, before.fingerprint256)
    await world.pass(12 * day, day)
    await world.until(() => credential.current.certificate.fingerprint256 !== before.fingerprint256)
    await world.pass(days * day, day)
    if (days > 0) assert.deepEqual(world.left, [], `a ${purpose} is waited for`)
    await world.pass(40 * day, day)
    assert.equal(world.left[0], 'handed over', purpose)
    assert.ok(world.clock.now() < before.validToDate.getTime() - 60 * day)
    stream?.destroy()
  }
})

test('[L31] an edge that joined hears of other authorities of the cluster, and writes them; without the file it writes none', async () => {
  using world = new World()
  const folder = mkdtempSync(join(root, 'joined-'))
  const path = join(folder, 'cluster-ca.crt')
  const made = (at: number) => new X509Certificate(makeState(start + at).ca.cert)
  const [first, second, third] = [made(0), made(1), made(2)]
  const current = { streams: world.pair.edge }
  const link = { current, observe: () => () => undefined } as unknown as EdgeLink
  const opened = () => new ClusterCaFile({ path, link, log: createLog({ level: 'error', write: () => undefined }) })
  const inFile = () => pemsIn(readFileSync(path, 'utf8')).map((pem) => new X509Certificate(pem).fingerprint256)
  world.clusterAuthorities = [first]
  const none = opened()
  void none.run(world.ending.signal)
  await world.pass(1_000, 1_000)
  assert.equal(existsSync(path), false)
  writeFileSync(path, String(first))
  const file = opened()
  void file.run(world.ending.signal)
  await world.pass(1_000, 1_000)
  for (const authorities of [[first, second], [second], [third]]) {
    world.clusterAuthorities = authorities
    world.identities.changed()
    const expected = authorities.map(({ fingerprint256 }) => fingerprint256)
    await world.until(() => inFile().join() === expected.join())
    assert.equal((await file.read())?.length, authorities.length)
    await world.pass(1_000, 1_000)
  }
  // A hub that knows none tells none.
  world.clusterAuthorities = []
  world.identities.changed()
  await world.pass(1_000, 1_000)
  assert.equal(inFile().length, 1)
})

test('[L31] what is signed is for the name of the link: another name, a weak key, one that is not at hand and one that is not due are refused', async () => {
  const world = new World()
  const [own, other] = [fresh(), fresh()]
  const refused = async (sentence: RegExp, key: Buffer, proof: Buffer) => {
    const answer = await world.ask(key, proof)
    assert.equal(answer.certificate.length, 0)
    assert.match(answer.sentence, sentence)
    assert.ok(answer.retryAfterMs > 0)
  }
  await refused(/second half of its life/, own.key, proofOf(own.key, 'n1', own.privateKey))
  world.clock.advance(400 * day)
  await refused(/not shown to be at hand/, own.key, proofOf(own.key, 'n2', own.privateKey))
  await refused(/not shown to be at hand/, own.key, proofOf(own.key, 'n1', other.privateKey))
  await refused(/no P-256 key/, Buffer.from('x'), Buffer.alloc(0))
  world.clock.advance(day)
  const weak = generateKeyPairSync('rsa', { modulusLength: 512 })
  const rsa = weak.publicKey.export({ type: 'spki', format: 'der' })
  await refused(/no P-256 key/, rsa, Buffer.alloc(64))
  const { key, privateKey } = fresh('secp384r1')
  await refused(/no P-256 key/, key, proofOf(key, 'n1', privateKey))
  const { certificate } = await world.ask(own.key, proofOf(own.key, 'n1', own.privateKey))
  assert.equal(new X509Certificate(certificate).subject, 'O=system:nodes\nCN=system:node:n1')
  const joined = { ...world.peer, certificate: { ...world.peer.certificate, signer: 'cluster' as const } }
  world.peer = joined
  await refused(/the cluster signed/, own.key, proofOf(own.key, 'n1', own.privateKey))
})

test('[L31] a link that outlives the authority that let it in is given nothing by the one after it', async () => {
  const { key, privateKey } = fresh()
  const announced = (state: ReturnType<typeof makeState>) => withNext(state, start)
  const ways = [
    (state: ReturnType<typeof makeState>) => withoutOld(withSwitched(announced(state), start)),
    (state: ReturnType<typeof makeState>) => withCompromised(announced(state), start),
  ]
  for (const way of ways) {
    const world = new World()
    assert.equal(retirementOf(world.peer, world.state), undefined)
    world.state = way(world.state)
    const { certificate, sentence } = await world.ask(key, proofOf(key, 'n1', privateKey))
    assert.equal(certificate.length, 0)
    assert.match(sentence, /the authority that signed the certificate of "n1" was retired: issue a new credential/)
    assert.equal(retirementOf(world.peer, world.state), sentence)
    const joined = { ...world.peer, certificate: { ...world.peer.certificate, signer: 'cluster' as const } }
    assert.equal(retirementOf(joined, world.state), undefined)
  }
})

test('[L31] a renewal that a hub gave before it heard of a revocation is revoked with what it continues, however often it was renewed', async () => {
  const world = new World()
  const policies = { revokedSince: () => ({ sinceMs: start + 800 * day - 2_000, by: 'policy/lost' }) }
  const { key, privateKey } = fresh()
  for (const at of [400, 800]) {
    world.clock.advance(400 * day)
    const { certificate } = await world.ask(key, proofOf(key, 'n1', privateKey))
    const renewed = new X509Certificate(certificate)
    world.peer = peerOf(world.state, { cert: renewed.toString(), key: '' })
    // Of two of one edge it is the newer, and its life begins now.
    assert.deepEqual([world.peer.certificate.issuedAtMs, world.peer.certificate.vouchedAtMs], [start + at * day, start])
    assert.ok(renewed.validToDate.getTime() > start + (at + 700) * day)
    assert.match(revocationOf(world.peer, policies) ?? '', /"n1" before .* was revoked/)
  }
  const issued = peerOf(world.state, edgePair(world.state, 'n1', world.clock.now()))
  assert.equal(revocationOf(issued, policies), undefined, 'what an operator issues later counts')
})

test('thousands of requests over one link cost a few signatures', async () => {
  const world = new World()
  world.clock.advance(400 * day)
  const { key, privateKey } = fresh()
  const proof = proofOf(key, 'n1', privateKey)
  let signed = 0
  for (let at = 0; at < 2_000; at++) {
    const answer = await world.ask(key, proof)
    if (answer.certificate.length > 0) signed++
    else assert.match(answer.sentence, /too often/)
  }
  assert.equal(signed, 5)
})

test('a hub whose authorities have nothing in common with those that are known is not believed', async () => {
  using world = new World()
  const credential = await world.edge()
  const known = readFileSync(world.path, 'utf8')
  world.state = makeState(start)
  world.identities.changed()
  await world.until(() => world.lines.some((line) => line.includes('none of them was known before')))
  assert.equal(readFileSync(world.path, 'utf8'), known)
  assert.equal(credential.current.authorities.length, 1)
})
