/**
 * Tokens: issued through the edge and given again while the cloud is away, to the same caller for the same wish only;
 * rotated, they lose nobody a right or a watch; expired, they open nothing.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Seat, type Told } from '../asking.ts'
import type { Findings } from '../findings.ts'
import type { RightsWorld } from './world.ts'

const a = '/api/v1/namespaces/rights-a'
const lists = `${a}/configmaps?resourceVersion=0`
const minting = `${a}/serviceaccounts/robot/token`
const asked = 3_600

type Wish = {
  readonly seconds?: number
  readonly audiences?: readonly string[]
  readonly uid?: string
  readonly protobuf?: boolean
}
type Granted = { readonly status: { readonly token: string; readonly expirationTimestamp: string } }

export type Issued = {
  readonly token: string
  readonly vault: string
  readonly expires: string
  /** The version of the robot's list, from which its watch goes on. */
  readonly version: string
}

/** With the cloud there: the node gets tokens for its pod, the robot in it uses the first, and then all are rotated. */
export async function issueTokens(world: RightsWorld, findings: Findings): Promise<Issued> {
  const first = granted(await mint(world, 'node', {}))
  const robot = new Seat(world.edge(), { token: first.token })
  const listed = await robot.ask(lists)
  findings.equal(listed.status, 200, 'the robot lists with the token that its node was given')
  const version = (JSON.parse(listed.body) as { metadata: { resourceVersion: string } }).metadata.resourceVersion
  findings.equal((await robot.watch(watching(version), 100)).status, 200, 'the robot watches')
  robot.close()
  const vault = granted(await mint(world, 'node', { audiences: ['vault'] }))
  // Two who may ask for tokens of the robot, too, each for another wish.
  findings.equal((await mint(world, 'minter', { uid: '' })).status, 201, 'a minter mints')
  findings.equal((await mint(world, 'nobody', {})).status, 403, 'nobody mints nothing')
  const last = granted(await mint(world, 'node', { protobuf: true }))
  findings.check(last.token !== first.token, 'the token was rotated')
  return { token: last.token, vault: vault.token, expires: last.expirationTimestamp, version }
}

/** Without the cloud, right after the cut: nobody has used the new token yet. */
export async function checkRotated(
  world: RightsWorld,
  findings: Findings,
  issued: Issued,
  when: string,
): Promise<void> {
  const robot = new Seat(world.edge(), { token: issued.token })
  const watched = await robot.watch(watching(issued.version), 500)
  findings.equal(
    [watched.status, watched.ended, watched.body.includes('ERROR')],
    [200, false, false],
    `${when}: the rotated robot's watch goes on`,
  )
  findings.equal((await robot.ask(lists)).status, 200, `${when}: the rotated robot lists`)
  // It never asked for them before: roles tell.
  findings.equal(
    (await robot.ask(`${a}/secrets/s1?resourceVersion=0`)).status,
    403,
    `${when}: the robot has no secrets`,
  )
  robot.close()
  const vault = new Seat(world.edge(), { token: issued.vault })
  findings.equal((await vault.ask(lists)).status, 401, `${when}: a token for somebody else's ears opens nothing here`)
  vault.close()
}

/** The API server looks at the clock once for its answer and once for the token: a second may pass in between. */
function isSameEnd(one: string, other: string): boolean {
  return Math.abs(Date.parse(one) - Date.parse(other)) <= 1_000
}

export async function checkKept(world: RightsWorld, findings: Findings, issued: Issued, when: string): Promise<void> {
  const { token, expires } = issued
  for (const protobuf of [false, true]) {
    const again = await mint(world, 'node', { protobuf })
    const form = protobuf ? 'protobuf' : 'JSON'
    if (!findings.equal(again.status, 201, `${when}: the node is given its token again (${form}, ${again.body})`))
      continue
    const title = `${when}: the last token, and its own end (${form})`
    findings.equal([granted(again).token, isSameEnd(granted(again).expirationTimestamp, expires)], [token, true], title)
  }
  const short = granted(await mint(world, 'node', { seconds: 600 }))
  const left = (Date.parse(short.expirationTimestamp) - Date.now()) / 1000
  findings.check(short.token === token && left > 590 && left <= 601, `${when}: who asks for less is told of less`, left)
  const long = granted(await mint(world, 'node', { seconds: 36_000 }))
  const isSame = isSameEnd(long.expirationTimestamp, expires)
  findings.check(isSame, `${when}: who asks for more gets no more`, [long.expirationTimestamp, expires])
  const vault = granted(await mint(world, 'node', { audiences: ['vault'] }))
  findings.equal(vault.token, issued.vault, `${when}: each audience has its own token`)
  const refused: readonly (readonly [string, Wish, readonly number[]])[] = [
    ['node', { audiences: ['bank'] }, [503]],
    ['node', { audiences: ['vault', 'bank'] }, [503]],
    ['node', { uid: world.podUids[1] ?? '' }, [503]],
    ['minter', {}, [503]],
    ['admin', {}, [503, 403]],
    // A refusal that nobody has told yet, or that a restart forgot, is ignorance: also that gives nothing.
    ['nobody', {}, [403, 503]],
    ['anonymous', {}, [403, 503]],
    ['unmapped', {}, [403, 503]],
    ['invented', {}, [401, 503]],
  ]
  for (const [who, wish, statuses] of refused) {
    const { status, body } = await mint(world, who, wish)
    const kept = [issued.token, issued.vault].some((one) => body.includes(one))
    findings.check(statuses.includes(status) && !kept, `${when}: ${who} wants ${JSON.stringify(wish)}`, [status, body])
  }
}

/** The pod is deleted: its token ends with it, and its node loses what only this pod needed. */
export async function checkDropped(world: RightsWorld, findings: Findings, cut: () => Promise<void>): Promise<void> {
  const secret = `${a}/secrets/s1?resourceVersion=0`
  await world.remove(`${a}/pods/p1?gracePeriodSeconds=0`)
  const give = performance.now() + 15_000
  const node = world.through('node')
  while ((await node.ask(secret)).status === 200 && performance.now() < give) await pause(500)
  findings.equal((await node.ask(secret)).status, 403, 'a secret that no pod of the node needs any more')
  await cut()
  const { status, body } = await mint(world, 'node', {})
  findings.check([403, 404, 503].includes(status), 'a token for a pod that is gone', [status, body.slice(0, 200)])
  findings.equal((await node.ask(secret)).status, 403, 'cut: the secret that no pod of the node needs any more')
}

/** One that ends while the cloud is away. */
export async function checkEnding(world: RightsWorld, findings: Findings, cut: () => Promise<void>): Promise<void> {
  const seconds = 6
  const ends = Date.now() + seconds * 1_000
  const robot = new Seat(world.edge(), { token: await world.tokenEnding('robot', seconds) })
  findings.equal((await robot.ask(lists)).status, 200, 'a token about to end still counts')
  await cut()
  if (Date.now() < ends - 1_000)
    findings.equal((await robot.ask(lists)).status, 200, 'it counts while the cloud is away')
  await pause(Math.max(0, ends + 1_100 - Date.now()))
  findings.equal(
    (await robot.ask(lists)).status,
    401,
    'superedge b4: a token that has ended opens nothing, cloud or not',
  )
  robot.close()
}

function watching(version: string): string {
  return `${a}/configmaps?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`
}

function granted({ status, body }: Told): Granted['status'] {
  if (status !== 201) throw new Error(`no token: ${status} ${body}`)
  return (JSON.parse(body) as Granted).status
}

function mint(world: RightsWorld, who: string, wish: Wish): Promise<Told> {
  const { seconds = asked, audiences = [], uid = world.podUids[0] ?? '', protobuf = false } = wish
  const name = uid === world.podUids[1] ? 'p2' : 'p1'
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name, uid }
  const spec = { audiences, expirationSeconds: seconds, ...(uid === '' ? {} : { boundObjectRef }) }
  const json = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
  const headers: Record<string, string> = { accept: 'application/json' }
  if (protobuf) headers['content-type'] = 'application/vnd.kubernetes.protobuf'
  const body = protobuf ? encoded({ seconds, audiences, bound: boundObjectRef }) : json
  return world.through(who).ask(minting, { method: 'POST', headers, body })
}

type Encoded = {
  seconds: number
  audiences: readonly string[]
  bound: { kind: string; apiVersion: string; name: string; uid: string }
}

/** As a kubelet sends it: the envelope of Kubernetes around a TokenRequest. */
function encoded({ seconds, audiences, bound }: Encoded): Buffer {
  const reference = [bound.kind, bound.apiVersion, bound.name, bound.uid].map((value, at) => text(at + 1, value))
  const spec = [
    ...audiences.map((audience) => text(1, audience)),
    framed(3, Buffer.concat(reference)),
    Buffer.concat([Buffer.of((4 << 3) | 0), varint(seconds)]),
  ]
  const raw = framed(2, Buffer.concat(spec))
  const kind = Buffer.concat([text(1, 'authentication.k8s.io/v1'), text(2, 'TokenRequest')])
  return Buffer.concat([Buffer.from('k8s\0'), framed(1, kind), framed(2, raw)])
}

function text(field: number, value: string): Buffer {
  return framed(field, Buffer.from(value))
}

function framed(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of((field << 3) | 2), varint(bytes.length), bytes])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; ; rest >>>= 7) {
    bytes.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80)
    if (rest < 0x80) return Buffer.from(bytes)
  }
}
