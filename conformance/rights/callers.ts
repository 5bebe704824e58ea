/**
 * Who asks, where earlier systems took one caller for another: nobody at all, somebody under another's user agent, a pod's token
 * beyond its namespace, a caller whose binding is just gone, and one who comes first while the cloud is away. Each is answered
 * as the API server answers the same caller: with the cloud, without it, and after a restart without it.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import type { Ake } from '../ake.ts'
import { type Person, Seat, type Told } from '../asking.ts'
import { startEdge } from '../edge/edge.ts'
import { Findings } from '../findings.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink } from '../link.ts'
import { ask, type Oracle } from '../oracle.ts'
import { checkPages } from '../secrecy.ts'
import type { EdgeStatus } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { accounts, bindings, nodeName, other, own, populateCallers, users } from './callersworld.ts'
import { askCertain } from './reads.ts'

export const step: Step = { name: 'edge-callers', tier: 'default', minutes: 1, run }

const lists = `/api/v1/namespaces/${own}/configmaps?resourceVersion=0`
const secret = `/api/v1/namespaces/${other}/secrets/hidden?resourceVersion=0`
const secrets = `/api/v1/namespaces/${other}/secrets?resourceVersion=0`
const waiting = { withinMs: 30_000, everyMs: 100 }

type Case = { readonly who: string; readonly path: string; readonly headers?: Readonly<Record<string, string>> }

const agent = { 'user-agent': 'robot/v1.36.3 (linux/amd64) kubernetes/$Format' }

/** Online, offline and after the restart. */
const always: readonly Case[] = [
  ...[lists, secret, secrets].map((path) => ({ who: 'anonymous', path })),
  { who: 'robot', path: lists, headers: agent },
  { who: 'bare', path: lists, headers: agent },
  { who: 'anonymous', path: lists, headers: agent },
  ...[secret, secrets].map((path) => ({ who: 'robot', path })),
]
/** Callers of whom the edge has not heard before. */
const firstOffline: readonly Case[] = ['newcomer', 'bare-newcomer'].flatMap(both)
const firstRestarted: readonly Case[] = ['later', 'bare-later'].flatMap(both)

function both(who: string): Case[] {
  return [
    { who, path: lists },
    { who, path: secret },
  ]
}

async function run(context: StepContext): Promise<StepResult> {
  await mkdir(context.dir, { recursive: true })
  const oracle = await context.oracle()
  const persons = await populateCallers(oracle)
  const callers = await Callers.open(context, oracle, persons)
  try {
    return await callers.play()
  } finally {
    await callers.close()
  }
}

type Parts = {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly persons: ReadonlyMap<string, Person>
  readonly link: Link
  readonly start: () => Promise<Ake>
  readonly edge: Ake
}

class Callers {
  readonly #oracle: Oracle
  readonly #persons: ReadonlyMap<string, Person>
  readonly #link: Link
  readonly #start: () => Promise<Ake>
  readonly #findings: Findings
  readonly #expected = new Map<Case, Told>()
  #edge: Ake

  private constructor(parts: Parts) {
    this.#findings = new Findings(parts.context.progress)
    this.#oracle = parts.oracle
    this.#persons = parts.persons
    this.#link = parts.link
    this.#start = parts.start
    this.#edge = parts.edge
  }

  static async open(context: StepContext, oracle: Oracle, persons: ReadonlyMap<string, Person>): Promise<Callers> {
    const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
    const kubeconfig = join(context.dir, 'edge.kubeconfig')
    const { cert, key } = await oracle.userCredential('edge-callers', ['ake:edges'])
    await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, cert, key })
    const credentials = await Promise.all(users.map((name) => oracle.userCredential(name)))
    const known = users.flatMap((name, at) => {
      const { certFile, keyFile } = credentials[at]!
      return ['--client-credential', `${name}=${certFile},${keyFile}`]
    })
    const args = ['--node', nodeName, '--client-ca', join(oracle.dir, 'ca.crt'), '--probe-every', '500ms', ...known]
    const options = { dir: join(context.dir, 'edge'), server: link.url, kubeconfig, signal: context.signal, args }
    const edge = await startEdge(options)
    const everyone = new Map<string, Person>([
      ...persons,
      ...users.map((name, at) => [name, credentials[at]!] as const),
    ])
    const start = () => startEdge({ ...options, port: edge.port })
    return new Callers({ context, oracle, persons: everyone, link, start, edge })
  }

  async play(): Promise<StepResult> {
    const findings = this.#findings
    await findings.part('online', async () => {
      await this.#settle()
      for (const one of [...always, ...firstOffline, ...firstRestarted]) {
        this.#expected.set(one, await this.#told(this.#oracle, one))
      }
      this.#checkExpected()
      await this.#compare('online', always, askCertain)
      findings.equal(await this.#status('hasty'), 200, 'hasty reads while its role is bound')
      findings.equal(await this.#status('fickle'), 200, 'fickle reads while its role is bound')
      await this.#unbind('fickle')
      findings.equal(await this.#status('fickle'), 403, 'the binding is gone from the copy: its caller is refused')
    })
    await findings.part('a binding goes, and then the cloud', async () => {
      await this.#unbind('hasty')
      await this.#link.set('blackhole')
      await this.#untilCloudIs('unreachable')
      findings.equal(await this.#status('hasty'), 403, 'offline: whose binding went just before the cloud')
    })
    const offline = async (when: string, first: readonly Case[]) => {
      await this.#compare(when, first)
      await this.#compare(when, always)
      for (const who of ['fickle', 'hasty']) findings.equal(await this.#status(who), 403, `${when}: ${who}`)
    }
    await findings.part('offline', () => offline('offline', firstOffline))
    await findings.part('offline, started again', async () => {
      await this.#edge.kill()
      this.#edge = await this.#start()
      await this.#untilCloudIs('unreachable')
      await offline('started again', firstRestarted)
    })
    await findings.part('pages', () => checkPages(findings, (path) => this.#page(path)))
    return findings.result
  }

  async close(): Promise<void> {
    await this.#edge.kill()
    await this.#link.close()
  }

  /** The edge holds all that is asked for, so that nothing is refused because it is absent. */
  async #settle(): Promise<void> {
    await until(async () => isHeldIn(await this.#look()), 'the edge holds what its node and its callers need', waiting)
    const isVerified = async () => {
      await this.#status('robot')
      return /^ake_tokens_verified_total\{.*"caller".*\} [1-9]/m.test(await this.#page('/metrics'))
    }
    await until(isVerified, 'the edge verifies tokens itself', waiting)
    for (const path of ['/api/v1/configmaps?resourceVersion=0', '/api/v1/secrets?resourceVersion=0']) {
      const { status } = await this.#ask(this.#edge, this.#edge, { path })
      this.#findings.equal(status, 200, `the administrator has ${path} mirrored`)
    }
  }

  /** A case that the API server itself allows to everybody, or to nobody, would show nothing. */
  #checkExpected(): void {
    const allowed = new Set(['robot', 'newcomer', 'visitor', 'later', 'later-visitor'])
    for (const [{ who, path }, { status }] of this.#expected) {
      const expected = path === lists && allowed.has(who) ? 200 : 403
      this.#findings.equal(status, expected, `the API server: ${who} ${path}`)
    }
  }

  async #compare(when: string, cases: readonly Case[], asked = (ask: () => Promise<Told>) => ask()): Promise<void> {
    for (const one of cases) {
      const expected = this.#expected.get(one) as Told
      const told = await asked(() => this.#told(this.#edge, one))
      const what = `${when}: ${one.who} ${one.path} ${one.headers === undefined ? '' : 'under the user agent of robot'}`
      if (!this.#findings.equal(told.status, expected.status, `${what} (${told.body.slice(0, 300)})`)) continue
      // What was decided before a restart says how long ago that was.
      const isSame = shape(told) === shape(expected) || (told.status === 403 && shape(told).startsWith(shape(expected)))
      this.#findings.check(isSame, what, [shape(told), shape(expected)])
    }
  }

  /** Resolves when the edge's own copy has it no more: its lag is over. */
  async #unbind(name: string): Promise<void> {
    const path = `${bindings}/${name}`
    const { status, body } = await ask(this.#oracle, path, { method: 'DELETE' })
    if (status !== 200) throw new Error(`DELETE ${path}: ${status} ${body}`)
    const isRefused = async () => (await this.#told(this.#oracle, { who: name, path: lists })).status === 403
    await until(isRefused, 'the API server follows its own roles', waiting)
    const isGone = async () => {
      const copy = { path: `${path}?resourceVersion=0` }
      return (await this.#ask(this.#edge, this.#edge, copy)).status === 404
    }
    await until(isGone, 'the binding is gone from the copy', waiting)
  }

  async #status(who: string): Promise<number> {
    return (await this.#told(this.#edge, { who, path: lists })).status
  }

  #told(server: { url: string; ca: string }, { who, ...asked }: Case): Promise<Told> {
    const person = this.#persons.get(who)
    if (person === undefined) throw new Error(`nobody is called ${who}`)
    return this.#ask(server, person, asked)
  }

  async #ask(
    server: { url: string; ca: string },
    person: Person,
    { path, headers = {} }: Omit<Case, 'who'>,
  ): Promise<Told> {
    const seat = new Seat(server, person)
    try {
      return await seat.ask(path, { headers })
    } finally {
      seat.close()
    }
  }

  async #page(path: string): Promise<string> {
    return (await this.#ask(this.#edge, this.#edge, { path })).body
  }

  async #look(): Promise<EdgeStatus> {
    return JSON.parse(await this.#page('/ake/status')) as EdgeStatus
  }

  async #untilCloudIs(state: string): Promise<void> {
    await until(async () => (await this.#look()).upstream.state === state, `the cloud is ${state}`, waiting)
  }
}

/** Its pods, the account of each, and who may do what. */
function isHeldIn({ interests }: EdgeStatus): boolean {
  const held = interests.filter(({ state, objects }) => (state === 'synced' || state === 'fed') && objects > 0)
  const isAccount = (name: string) =>
    held.some(({ resource, namespace, fields = `metadata.name=${name}` }) => {
      return resource === 'serviceaccounts' && namespace === own && fields === `metadata.name=${name}`
    })
  const pods = held.find(({ resource, fields }) => resource === 'pods' && fields === `spec.nodeName=${nodeName}`)
  const isBound = held.some(({ resource }) => resource === 'rolebindings')
  return pods?.objects === accounts.length && accounts.every(isAccount) && isBound
}

/** A refusal's sentence, or what is in the list: a list is as new as its copy. */
function shape({ status, body }: Told): string {
  if (status !== 200) return (JSON.parse(body) as { message: string }).message
  return JSON.stringify((JSON.parse(body) as { items: unknown }).items)
}
