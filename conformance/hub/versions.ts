/**
 * A hub and an edge of different releases (L9), as real processes over a real API server: the program of an earlier commit and today's,
 * each on either side of the link. What clients do at the edge (reads, writes, a watch) goes on through cuts, a hub that is killed and an edge that is
 * killed; then the older side is upgraded on its folder, under the other one. The earlier program is taken from the history of this clone.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../src/base/until.test-support.ts'
import { Client, Watch } from '../../test/process.ts'
import type { Ake } from '../ake.ts'
import { startEdge } from '../edge/edge.ts'
import { Findings } from '../findings.ts'
import { Hub, issueEdge } from '../hubs.ts'
import { type Link, startLink } from '../link.ts'
import { ask, type Oracle } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'
import type { Step, StepContext, StepResult } from '../step.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')

/** The first whose hubs and edges do all that a link is for; before edges joined, before policies, rules of callers and signs of documents. */
const olderCommit = '2cb38a7'
const needed = `the commit ${olderCommit} in the history of this clone, which a shallow one does not have`

const account = 'worker'
const node = 'edge-1'
/** On a busy machine; usually a second. After a cut an edge comes back within half a minute. */
const waiting = { withinMs: 90_000, everyMs: 100 }

export const step: Step = {
  name: 'hub-versions',
  tier: 'all',
  minutes: 3,
  missing: async () => ((await hasOlder()) ? [] : [needed]),
  run: versions,
}

async function hasOlder(): Promise<boolean> {
  const found = await run('git', ['cat-file', '-e', `${olderCommit}^{commit}`], { cwd: root }).catch(() => undefined)
  return found !== undefined
}

async function versions(context: StepContext): Promise<StepResult> {
  const findings = new Findings(context.progress)
  if (!(await hasOlder())) {
    findings.note(`left out: it needs ${needed}`)
    return findings.result
  }
  await mkdir(context.dir, { recursive: true })
  const older = await unpack(join(context.dir, 'older'))
  const oracle = await context.oracle()
  const pairs = {
    'older-hub': { hub: older },
    'older-edge': { edge: older },
  }
  for (const [name, programs] of Object.entries(pairs)) {
    if (!context.only(name)) continue
    await findings.part(name, async () => {
      const pair = await Pair.open({ name, programs, oracle, context, findings })
      try {
        await pair.live()
      } finally {
        await pair.close()
      }
    })
  }
  return findings.result
}

/** The launcher of that commit. It ran on what is installed now: the dependencies are the same. */
async function unpack(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true })
  const archive = `${dir}.tar`
  await run('git', ['archive', '--output', archive, olderCommit], { cwd: root })
  await run('tar', ['-xf', archive, '-C', dir])
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'))
  return join(dir, 'bin', 'ake')
}

/** Of each side the launcher, where it is not today's. */
type Programs = { readonly hub?: string; readonly edge?: string }

type Parts = {
  readonly name: string
  readonly programs: Programs
  readonly oracle: Oracle
  readonly context: StepContext
  readonly findings: Findings
}

/** Something changes at the API server, then what was broken is mended. */
type Changing = (why: string, mend?: () => Promise<void>) => Promise<void>

type Listed = { readonly metadata: { readonly resourceVersion: string }; readonly items: readonly object[] }

/** A caller who is known by a token: the hub has to be shown that it may. */
class TokenClient extends Client {
  readonly #token: string

  constructor({ url, ca }: { readonly url: string; readonly ca: string }, token: string) {
    super({ url, credentials: { ca, cert: '', key: '' } })
    this.#token = token
  }

  override open(method: string, path: string, headers: Record<string, string> = {}): ReturnType<Client['open']> {
    return super.open(method, path, { ...headers, authorization: `Bearer ${this.#token}` })
  }
}

class Pair {
  readonly #parts: Parts
  readonly #hub: Hub
  readonly #link: Link
  readonly #token: string
  readonly #maps: string
  readonly #edgeOf: (program?: string) => Promise<Ake>
  #edge: Ake
  #round = 0

  private constructor(parts: {
    parts: Parts
    hub: Hub
    link: Link
    token: string
    maps: string
    edgeOf: (program?: string) => Promise<Ake>
    edge: Ake
  }) {
    this.#parts = parts.parts
    this.#hub = parts.hub
    this.#link = parts.link
    this.#token = parts.token
    this.#maps = parts.maps
    this.#edgeOf = parts.edgeOf
    this.#edge = parts.edge
  }

  static async open(parts: Parts): Promise<Pair> {
    const { name, programs, oracle, context } = parts
    const space = `versions-${name}`
    await populate(oracle, space)
    const token = await oracle.tokenFor(space, account)
    const dir = join(context.dir, name)
    const { signal } = context
    // Nobody is trusted: what the edge has is proved by the token of its caller.
    const hub = await Hub.start({ dir, kubeconfig: oracle.kubeconfig, ...launcher(programs.hub), signal }, 'hub')
    const link = await startLink({ target: { host: '127.0.0.1', port: hub.port } })
    const way = { hub: [`wss://127.0.0.1:${link.port}`], credential: await issueEdge(dir, node) }
    const options = { ...way, dir: join(dir, 'edge'), signal }
    const edge = await startEdge({ ...options, ...launcher(programs.edge) })
    const edgeOf = (program?: string) => startEdge({ ...options, ...launcher(program), port: edge.port })
    const maps = `/api/v1/namespaces/${space}/configmaps`
    for (const [side, { pid }] of Object.entries({ hub, edge })) {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
      const isOlder = command.includes(join(context.dir, 'older', 'src', 'main.ts'))
      parts.findings.equal(isOlder, side === olderSide(programs), `the ${side} is of the release that it should be`)
    }
    return new Pair({ parts, hub, link, token, maps, edgeOf, edge })
  }

  async close(): Promise<void> {
    await this.#edge.kill()
    await this.#hub.end('kill')
    await this.#link.close()
  }

  async live(): Promise<void> {
    const { programs } = this.#parts
    await this.#untilEqual('the first reads')
    await this.#writes()
    const first = await this.#watched(async (change) => {
      await change('while it is there')
      await this.#cut(change)
      await this.#hub.restart('kill')
      await change('behind a hub that was killed')
    })
    await this.#edge.kill()
    await this.#change('without an edge')
    this.#edge = await this.#edgeOf(programs.edge)
    await this.#untilEqual('an edge that was killed')
    await this.#resumed(first, 'a watch from before goes on at the edge that was killed')
    // The older side becomes today's, on its folder.
    if (programs.hub !== undefined) {
      await this.#watched(async (change) => {
        await this.#hub.restart('orderly', launcherHere)
        await change('behind a hub that was upgraded')
      })
    } else {
      await this.#edge.stop()
      await this.#change('while the edge is upgraded')
      this.#edge = await this.#edgeOf()
      await this.#untilEqual('an edge that was upgraded')
      await this.#resumed(first, 'a watch from before goes on at the edge that was upgraded')
    }
    await this.#writes()
  }

  /** What the API server has of the namespace, told by its administrator. */
  async #truth(): Promise<Listed> {
    const { status, body } = await ask(this.#parts.oracle, this.#maps)
    if (status !== 200) throw new Error(`LIST at the API server: ${status} ${body}`)
    return JSON.parse(body) as Listed
  }

  #client(): TokenClient {
    return new TokenClient(this.#edge, this.#token)
  }

  /** A LIST and a GET at the edge are the API server's, once what was changed has arrived. */
  async #untilEqual(what: string): Promise<void> {
    const client = this.#client()
    const { items } = await this.#truth()
    const isEqual = async () => {
      const answer = await client.ask('GET', `${this.#maps}?resourceVersion=0`).catch(() => undefined)
      if (answer?.status !== 200) return false
      return sorted((JSON.parse(answer.body.toString()) as Listed).items) === sorted(items)
    }
    await until(isEqual, what, waiting)
    const kept = await client.json<object>('GET', `${this.#maps}/kept`)
    const expected = items.find((one) => nameOf(one) === 'kept')
    this.#parts.findings.equal(withoutType(kept), withoutType(expected ?? {}), `${what}: a GET of one`)
    client.close()
  }

  /** Through the edge, as its caller: each is read at the API server, and a stale one is refused by it. */
  async #writes(): Promise<void> {
    const { findings, oracle } = this.#parts
    const client = this.#client()
    const name = `written-${this.#round++}`
    const at = `${this.#maps}/${name}`
    const made = await client.json<object>('POST', this.#maps, { metadata: { name }, data: { by: 'post' } })
    const put = await client.ask('PUT', at, { ...made, data: { by: 'put' } })
    findings.equal(put.status, 200, 'a PUT through the edge')
    const stale = await client.ask('PUT', at, { ...made, data: { by: 'stale' } })
    findings.equal(stale.status, 409, 'a stale PUT through the edge')
    const patched = await client.ask('PATCH', at, { data: { and: 'patch' } }, { 'content-type': merge })
    findings.equal(patched.status, 200, 'a PATCH through the edge')
    const { data } = JSON.parse((await ask(oracle, at)).body) as { data: object }
    findings.equal(data, { and: 'patch', by: 'put' }, 'what was written, at the API server')
    // Who wrote reads what it wrote.
    findings.equal(
      (await client.json<{ data: object }>('GET', at)).data,
      { and: 'patch', by: 'put' },
      'what was written, at the edge',
    )
    findings.equal((await client.ask('DELETE', at)).status, 200, 'a DELETE through the edge')
    findings.equal((await client.ask('GET', at)).status, 404, 'what was deleted, at the edge')
    const forbidden = await client.ask('GET', '/api/v1/namespaces/kube-system/configmaps')
    findings.equal(forbidden.status, 403, 'what the caller may not read')
    client.close()
  }

  /** Changed, added and removed at the API server; answers what a watch has to tell of it. */
  async #change(why: string): Promise<string[]> {
    const round = this.#round++
    const send = async (method: string, path: string, body?: object) => {
      const { status, body: text } = await ask(this.#parts.oracle, path, { method, ...(body && { body }) })
      if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    }
    await send('PUT', `${this.#maps}/kept`, { metadata: { name: 'kept' }, data: { why, round: `${round}` } })
    await send('POST', this.#maps, { metadata: { name: `added-${round}` }, data: { why } })
    await send('DELETE', `${this.#maps}/many-${round}`)
    return ['MODIFIED kept', `ADDED added-${round}`, `DELETED many-${round}`]
  }

  /** A watch at the edge is told each change once while things happen, and never ends. Answers the version that it began at. */
  async #watched(body: (change: Changing) => Promise<void>): Promise<string> {
    const { findings } = this.#parts
    const client = this.#client()
    const { metadata } = await client.json<Listed>('GET', `${this.#maps}?resourceVersion=0`)
    const watch = new Watch(client, `${this.#maps}?watch=true&resourceVersion=${metadata.resourceVersion}`)
    const expected: string[] = []
    await body(async (why, mend) => {
      expected.push(...(await this.#change(why)))
      await mend?.()
      await watch.until((frames) => frames.length >= expected.length, waiting.withinMs)
      const told = watch.frames.map(({ type, object }) => `${type} ${object.metadata.name}`)
      findings.equal(told.toSorted(), expected.toSorted(), `what a watch is told, ${why}`)
      await this.#untilEqual(why)
    })
    findings.check(!watch.stream.closed, 'the watch is open at the end')
    client.close()
    return metadata.resourceVersion
  }

  /** Without the hub reads go on and writes are refused; what changed meanwhile comes when it is back. */
  async #cut(change: Changing): Promise<void> {
    const { findings } = this.#parts
    for (const mode of ['refuse', 'blackhole'] as const) {
      const client = this.#client()
      await this.#link.set(mode)
      const reading = client.ask('GET', `${this.#maps}?resourceVersion=0`)
      findings.equal((await reading).status, 200, `${mode}: a LIST from the copy`)
      const { status } = await client.ask('POST', this.#maps, { metadata: { name: 'never' } })
      findings.check(status >= 500, `${mode}: a write without the hub`, status)
      client.close()
      await change(`after ${mode}`, () => this.#link.set('up'))
    }
  }

  /** From a version of long ago: all that happened since comes, or the client is told to list again; never less. */
  async #resumed(version: string, what: string): Promise<void> {
    const client = this.#client()
    const watch = new Watch(client, `${this.#maps}?watch=true&resourceVersion=${version}`)
    const names = new Set((await this.#truth()).items.map(nameOf))
    const added = [...names].filter((name) => name.startsWith('added-'))
    await watch.until((frames) => {
      const seen = new Set(frames.map(({ object }) => object.metadata.name))
      return added.every((name) => seen.has(name))
    }, waiting.withinMs)
    this.#parts.findings.check(
      watch.frames.every(({ type }) => type !== 'ERROR'),
      what,
    )
    client.close()
  }
}

const merge = 'application/merge-patch+json'
const launcherHere = join(root, 'bin', 'ake')
const olderSide = ({ hub }: Programs) => (hub === undefined ? 'edge' : 'hub')
const launcher = (program: string | undefined) => (program === undefined ? {} : { program })

async function populate(oracle: Oracle, space: string): Promise<void> {
  const make = creatorOf(oracle)
  await make('/api/v1/namespaces', { metadata: { name: space } })
  await make(`/api/v1/namespaces/${space}/serviceaccounts`, { metadata: { name: account } })
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${space}`
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }]
  await make(`${rbac}/roles`, { metadata: { name: account }, rules })
  await make(`${rbac}/rolebindings`, {
    metadata: { name: account },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace: space }],
  })
  const maps = `/api/v1/namespaces/${space}/configmaps`
  await make(maps, { metadata: { name: 'kept' }, data: { why: 'first' } })
  for (let at = 0; at < 20; at++) await make(maps, { metadata: { name: `many-${at}` }, data: { text: `line ${at}` } })
}

function nameOf(object: object): string {
  return (object as { metadata: { name: string } }).metadata.name
}

function sorted(items: readonly object[]): string {
  return JSON.stringify(items.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)))
}

/** Items of a list do not say what they are. */
function withoutType(object: object): object {
  const { kind: _, apiVersion: __, ...rest } = object as { kind?: string; apiVersion?: string }
  return rest
}
