import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain } from '../../kube/json/json.ts'
import { type Bench, FakeCloud, openBench, settle } from '../access.test-support.ts'
import { makeQuestion } from '../question.ts'
import { accountCaller, type BoundObjects } from './accounttoken.ts'
import type { AccountTokens } from './accounttokens.ts'
import { issuer, jwksOf, makeSigner, podClaims, type Signer, signToken } from './tokens.test-support.ts'

const pods = makeQuestion({ verb: 'list', resource: 'pods', namespace: 'shop' })
const [own, next] = [makeSigner(), makeSigner()]

/** What the mirror holds, by kind and name: a uid, or that there is none. */
class Objects implements BoundObjects {
  readonly uids = new Map([
    ['ServiceAccount till', 'account-uid'],
    ['Pod till-1', 'pod-uid'],
  ])
  /** While the copy is not in step. */
  isLate = false

  /** What each Secret holds. */
  token = ''

  find(kind: string, _namespace: string, name: string) {
    const uid = this.uids.get(`${kind} ${name}`)
    if (uid === undefined || this.isLate) return 'unknown'
    const data = { token: Buffer.from(this.token).toString('base64') }
    return uid === '' ? 'absent' : { uid, deletionMs: undefined, read: () => fromPlain({ data }) }
  }
}

type World = Bench & { readonly objects: Objects; readonly accounts: AccountTokens }

let made = 0

/** Each is another one: of another name, for another time. */
function shown(
  { clock }: Pick<Bench, 'clock'>,
  { signer = own, ...changed }: { signer?: Signer; aud?: string[]; exp?: number; iss?: string } = {},
) {
  const token = signToken(signer, podClaims(clock.now(), { jti: `t-${made++}`, ...changed }))
  return { kind: 'token', token } as const
}

/** As the API server sees them. */
function accept(cloud: FakeCloud, ...shownOnes: readonly { token: string }[]): void {
  for (const { token } of shownOnes) {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const { namespace, serviceaccount: account, pod, node } = claims['kubernetes.io']
    cloud.users.set(token, accountCaller({ namespace, account, pod, node, id: claims.jti }))
  }
}

function publish(cloud: FakeCloud, ...signers: readonly Signer[]): void {
  publishAs(issuer, cloud, jwksOf(...signers))
}

function publishAs(named: string, cloud: FakeCloud, jwks: string): void {
  const document = { issuer: named, jwks_uri: 'https://elsewhere' }
  cloud.documents.set('/.well-known/openid-configuration', JSON.stringify(document))
  cloud.documents.set('/openid/v1/jwks', jwks)
}

const differences = ({ lines }: Pick<Bench, 'lines'>) => lines.filter((line) => line.includes('access.tokens.differ'))

/** One token was reviewed and taken: the audience is known, and of sixteen that are new the first was put to the API server. */
async function openWorld(cloud = new FakeCloud()): Promise<World> {
  const objects = new Objects()
  if (cloud.documents.size === 0) publish(cloud, own)
  const bench = await openBench({ cloud, objects })
  const world = { ...bench, objects, accounts: bench.accounts as AccountTokens }
  await world.accounts.refresh()
  for (let at = 0; at < 2; at++) {
    const token = shown(world)
    accept(cloud, token)
    assert.equal(await world.access.decide(token, pods), 'allowed')
    await settle()
  }
  cloud.asked.length = 0
  return world
}

test('[I2] without the cloud a token that was never seen is its caller, if it verifies and what it is bound to exists', async () => {
  const world = await openWorld()
  world.cloud.state = 'unreachable'
  const token = shown(world)
  assert.equal(world.access.decide(token, pods), 'allowed')
  assert.equal(world.access.held(token)?.name, 'system:serviceaccount:shop:till')
  const again = await world.restart()
  assert.equal(again.access.decide(shown(world), pods), 'allowed')
  for (const signer of [next, { ...next, id: own.id }]) {
    const forged = shown(world, { signer })
    assert.equal(world.access.held(forged), undefined)
    assert.equal(world.access.refusal(forged, pods, await world.access.decide(forged, pods)).status.code, 401)
  }
  assert.equal(world.access.held(shown(world, { aud: ['vault'] })), undefined)
  assert.equal(world.access.held(shown(world, { exp: world.clock.now() / 1000 - 1 })), undefined)
})

test('[I1] without the cloud a token whose pod or account is known to be gone is refused, also one that was known', async () => {
  const world = await openWorld()
  const known = shown(world)
  accept(world.cloud, known)
  assert.equal(await world.access.decide(known, pods), 'allowed')
  world.cloud.state = 'unreachable'
  for (const gone of ['Pod till-1', 'ServiceAccount till']) {
    world.objects.uids.set(gone, '')
    world.accounts.doubt()
    assert.equal(world.access.decide(known, pods), 'unauthorized')
    assert.equal(world.access.decide(shown(world), pods), 'unauthorized')
    world.objects.uids.set(gone, 'another')
    assert.equal(world.access.decide(shown(world), pods), 'unauthorized')
    world.objects.uids.set(gone, gone === 'Pod till-1' ? 'pod-uid' : 'account-uid')
  }
  // What is not known here is no caller at first sight, and takes nothing from one that the API server took.
  world.cloud.state = 'reachable'
  const taken = shown(world)
  accept(world.cloud, taken)
  assert.equal(await world.access.decide(taken, pods), 'allowed')
  world.cloud.state = 'unreachable'
  world.objects.uids.delete('Pod till-1')
  world.accounts.doubt()
  assert.equal(world.access.decide(taken, pods), 'allowed')
  assert.equal(world.access.held(shown(world)), undefined)
})

test('a token that verifies is not reviewed, however long it is used: only the keys are, once for all', async () => {
  const world = await openWorld()
  const tokens = Array.from({ length: 5 }, () => shown(world))
  accept(world.cloud, ...tokens)
  for (let second = 0; second < 120; second += 4) {
    for (const token of tokens) assert.equal(await world.access.decide(token, pods), 'allowed')
    await settle()
    world.clock.advance(4_000)
  }
  const count = (what: string) => world.cloud.asked.filter((one) => one.startsWith(what)).length
  assert.equal(count('subject'), 0)
  const fetched = count('get /openid/v1/jwks')
  assert.ok(fetched >= 4 && fetched <= 8, `${fetched}`)
})

test('a token that is shown after a while makes the keys be asked for in the place of its review', async () => {
  const world = await openWorld()
  world.clock.advance(600_000)
  const tokens = [shown(world), shown(world)]
  accept(world.cloud, ...tokens)
  assert.deepEqual(await Promise.all(tokens.map(async (token) => await world.access.decide(token, pods))), [
    'allowed',
    'allowed',
  ])
  assert.deepEqual(world.cloud.asked.filter((one) => one.startsWith('get')).sort(), [
    'get /.well-known/openid-configuration',
    'get /openid/v1/jwks',
  ])
  assert.equal(
    world.cloud.asked.some((one) => one.startsWith('subject')),
    false,
  )
})

test('[I5] a token whose pod the mirror sees go is asked about at its next use', async () => {
  const world = await openWorld()
  const token = shown(world)
  accept(world.cloud, token)
  assert.equal(await world.access.decide(token, pods), 'allowed')
  world.objects.uids.set('Pod till-1', '')
  world.accounts.doubt()
  world.cloud.users.delete(token.token)
  assert.equal(await world.access.decide(token, pods), 'unauthorized')
  assert.ok(world.cloud.asked.some((one) => one.startsWith('subject')))
})

test('[I5] where the copy is not in step each token counts by its review of the last half minute', async () => {
  const world = await openWorld()
  const token = shown(world)
  accept(world.cloud, token)
  assert.equal(await world.access.decide(token, pods), 'allowed')
  world.objects.isLate = true
  world.clock.advance(11_000)
  world.cloud.users.delete(token.token)
  assert.equal(await world.access.decide(token, pods), 'unauthorized')
})

test('[I5] a key that was removed verifies for half a minute at most, and a new one is known at once', async () => {
  const world = await openWorld()
  const token = shown(world)
  accept(world.cloud, token)
  assert.equal(await world.access.decide(token, pods), 'allowed')
  publish(world.cloud, next)
  world.cloud.users.clear()
  const rotated = shown(world, { signer: next })
  accept(world.cloud, rotated)
  world.clock.advance(6_000)
  assert.equal(await world.access.decide(rotated, pods), 'allowed')
  assert.equal(
    world.cloud.asked.some((one) => one.startsWith('subject')),
    false,
  )
  assert.equal(await world.access.decide(token, pods), 'unauthorized')
  // Without the cloud, too.
  world.clock.advance(11_000)
  world.cloud.state = 'unreachable'
  assert.equal(world.access.held(shown(world)), undefined)
})

test('names of keys that are invented have the keys asked for every few seconds at most', async () => {
  const world = await openWorld()
  for (let at = 0; at < 40; at++) {
    const forged = shown(world, { signer: { ...next, id: `invented-${at}` } })
    assert.equal(await world.access.decide(forged, pods), 'unauthorized')
    world.clock.advance(250)
  }
  const fetched = world.cloud.asked.filter((one) => one === 'get /openid/v1/jwks').length
  assert.ok(fetched >= 1 && fetched <= 3, `${fetched}`)
})

test('[I1] a token that the API server sees otherwise ends verification here, over a restart too, until its keys change', async () => {
  const world = await openWorld()
  // Of so many at least one is put to it.
  for (let at = 0; at < 16; at++) {
    const one = shown(world)
    world.cloud.users.set(one.token, { name: 'mallory', uid: 'm', groups: ['system:authenticated'] })
    await world.access.decide(one, pods)
    await settle()
  }
  assert.equal(world.lines.filter((line) => line.includes('access.tokens.differ')).length, 1)
  assert.match(world.accounts.figures().join(''), /verdict="differs"\} 1/)
  world.cloud.state = 'unreachable'
  assert.equal(world.access.held(shown(world)), undefined)
  const again = await world.restart()
  assert.equal(again.access.held(shown(world)), undefined)
  world.cloud.state = 'reachable'
  publish(world.cloud, own, next)
  await again.accounts?.refresh()
  world.cloud.state = 'unreachable'
  assert.equal(again.access.held(shown(world))?.name, 'system:serviceaccount:shop:till')
})

test('[I1] a token that verifies here and is refused by the API server ends verification, unless the reason is seen soon', async () => {
  for (const isSeen of [true, false]) {
    const world = await openWorld()
    const token = shown(world)
    assert.equal(typeof world.access.held(token), 'object')
    world.access.learn(token, pods, { status: 401, askedAt: world.clock.steady() })
    assert.equal(await world.access.decide(token, pods), 'unauthorized')
    if (isSeen) world.objects.uids.set('Pod till-1', '')
    world.accounts.doubt()
    world.clock.advance(5_000)
    await settle()
    assert.equal(
      world.lines.some((line) => line.includes('access.tokens.differ')),
      !isSeen,
    )
  }
})

test('where the edge may not read the keys all is reviewed as ever, and they are not asked for again soon', async () => {
  const cloud = new FakeCloud()
  const world = await openBench({ cloud, objects: new Objects() })
  await world.accounts?.refresh()
  const token = shown(world)
  accept(cloud, token)
  for (let at = 0; at < 10; at++) {
    assert.equal(await world.access.decide(token, pods), 'allowed')
    await world.accounts?.refresh()
    world.clock.advance(31_000)
  }
  assert.equal(cloud.asked.filter((one) => one.startsWith('get')).length, 2)
  assert.equal(cloud.asked.filter((one) => one.startsWith('subject')).length, 10)
})

test('[I4] what is written down of keys and callers holds no token', async () => {
  const world = await openWorld()
  const token = shown(world)
  assert.equal(typeof world.access.held(token), 'object')
  await world.restart()
  const signature = token.token.split('.')[2] ?? ''
  assert.ok(world.records.seen.some((one) => one.includes(issuer)))
  for (const one of [...world.records.seen, ...world.lines]) assert.ok(!one.includes(signature))
})

test('[I5] what was verified by the copy of a cut line is asked about again when the line is back', async () => {
  const world = await openWorld()
  world.cloud.state = 'unreachable'
  const token = shown(world)
  assert.equal(world.access.decide(token, pods), 'allowed')
  world.cloud.state = 'reachable'
  // Deleted meanwhile, which the copy has yet to hear.
  world.objects.isLate = true
  assert.equal(await world.access.decide(token, pods), 'unauthorized')
})

test('what could not be told is looked at again after a second', async () => {
  const world = await openWorld()
  world.cloud.state = 'unreachable'
  const token = shown(world)
  world.objects.isLate = true
  assert.equal(world.access.held(token), undefined)
  world.objects.isLate = false
  world.clock.advance(1_000)
  assert.equal(world.access.held(token)?.name, 'system:serviceaccount:shop:till')
})

test('a token that is kept in a Secret is put to the API server, which notes its use, and verified as soon as that is away', async () => {
  const world = await openWorld()
  const prefix = 'kubernetes.io/serviceaccount/'
  const token = signToken(own, {
    iss: 'kubernetes/serviceaccount',
    sub: 'system:serviceaccount:shop:till',
    [`${prefix}namespace`]: 'shop',
    [`${prefix}secret.name`]: 'kept',
    [`${prefix}service-account.name`]: 'till',
    [`${prefix}service-account.uid`]: 'account-uid',
  })
  world.objects.uids.set('Secret kept', 'secret-uid')
  world.objects.token = token
  assert.equal(world.accounts.judge(token, 'd').kind, 'undecided')
  world.cloud.state = 'unreachable'
  assert.equal(world.accounts.judge(token, 'd').kind, 'caller')
})

test('[I5] keys that were not confirmed for half a minute verify nothing, and count from when they were asked for', async () => {
  const world = await openWorld()
  const { token } = shown(world)
  const isFresh = () => world.accounts.judge(token, 'd').kind === 'caller'
  assert.ok(isFresh())
  world.clock.advance(6_000)
  world.cloud.mode = 'hang'
  const asking = world.accounts.refresh()
  await settle()
  world.clock.advance(20_000)
  world.cloud.release()
  await asking
  assert.ok(isFresh())
  world.clock.advance(10_000)
  assert.ok(!isFresh())
})

test('a refusal by keys that have changed meanwhile, or that cannot be asked for any more, is no difference', async () => {
  for (const isCut of [true, false]) {
    const world = await openWorld()
    const token = shown(world)
    assert.equal(typeof world.access.held(token), 'object')
    world.clock.advance(5_000)
    world.access.learn(token, pods, { status: 401, askedAt: world.clock.steady() })
    if (isCut) world.cloud.state = 'unreachable'
    else publish(world.cloud, next)
    world.clock.advance(5_000)
    await settle()
    assert.deepEqual(differences(world), [])
  }
})

test('groups that the API server names in another order are the same caller', async () => {
  const world = await openWorld()
  for (let at = 0; at < 16; at++) {
    const one = shown(world)
    accept(world.cloud, one)
    const caller = world.cloud.users.get(one.token)
    assert.ok(caller)
    world.cloud.users.set(one.token, { ...caller, groups: caller.groups.toReversed() })
    await world.access.decide(one, pods)
    await settle()
  }
  assert.deepEqual(differences(world), [])
})

test('[I1] of several audiences that a token was taken for it is not known which counted', async () => {
  const world = await openWorld()
  world.accounts.learnAudiences(['a', 'b'])
  world.cloud.state = 'unreachable'
  assert.equal(world.access.held(shown(world, { aud: ['a'] })), undefined)
  assert.equal(typeof world.access.held(shown(world, { aud: ['b', 'c', 'a'] })), 'object')
  for (let at = 0; at < 40; at++) world.accounts.learnAudiences([`of-${at}`])
  await world.restart()
  const kept = [...world.records.kept.values()].find(({ value }) => value.includes('"audiences"'))
  assert.equal(JSON.parse(String(kept?.value)).audiences.length, 32)
})

test('[I1] what one issuer was seen to be for says nothing of the next one', async () => {
  const world = await openWorld()
  const iss = 'https://next.example'
  publishAs(iss, world.cloud, jwksOf(own))
  world.clock.advance(6_000)
  await world.accounts.refresh()
  world.cloud.state = 'unreachable'
  assert.equal(world.access.held(shown(world, { iss })), undefined)
})

test('a document of keys that is too long is not read', async () => {
  const cloud = new FakeCloud()
  publishAs(issuer, cloud, `${jwksOf(own)}${' '.repeat(256 << 10)}`)
  const world = await openBench({ cloud, objects: new Objects() })
  await world.accounts?.refresh()
  assert.ok(cloud.asked.includes('get /openid/v1/jwks'))
  const unread = { kind: 'undecided', why: 'no keys are known', key: false }
  assert.deepEqual(world.accounts?.judge(shown(world).token, 'd'), unread)
  publish(cloud, own)
  world.clock.advance(30_000)
  await world.accounts?.refresh()
  world.accounts?.learnAudiences([issuer])
  assert.equal(world.accounts?.judge(shown(world).token, 'e').kind, 'caller')
})

test('[I2] what the operator says that the API server takes need not be seen first: each of it is enough', async () => {
  const cloud = new FakeCloud()
  publish(cloud, own)
  const world = await openBench({ cloud, objects: new Objects(), audiences: ['api', 'other'] })
  await world.accounts?.refresh()
  cloud.state = 'unreachable'
  assert.equal(world.access.held(shown(world, { aud: ['vault', 'other'] }))?.name, 'system:serviceaccount:shop:till')
  assert.equal(world.access.held(shown(world, { aud: ['vault'] })), undefined)
  assert.equal(world.access.held(shown(world)), undefined, 'the issuer is none of them')
})
