/**
 * The informers of @kubernetes/client-node over `ake serve` that is restarted under them. They know no bookmarks and give
 * up a silent watch after half a minute, so they resume from old versions, often: nothing may be lost or listed again.
 */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import {
  CoreV1Api,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  ListWatch,
  type V1ConfigMap,
  Watch,
} from '@kubernetes/client-node'
import type { Step, StepContext } from './step.ts'

const namespace = 'default'
const collection = `/api/v1/namespaces/${namespace}/configmaps`
const keys = 48
const writers = 6
const writesMade = 4_000
const restarts = 10
/** client-node's half minute without an event, shortened so that a run has many. */
const patienceMs = 700
/** What a program that uses these informers does after an error: start again, a little later. */
const startAgainMs = 150
const askAgainMs = 50
/** An informer that has not seen the last write by then never will. */
const settleMsMax = 30_000
/** The last write goes to this object and carries this label, so that every selector sees it. */
const lastName = 'map-7'

type Wanted = { readonly name: string; readonly path: string; readonly labels?: string; readonly fields?: string }
const wanted: readonly Wanted[] = [
  { name: 'one namespace', path: collection },
  { name: 'all namespaces', path: '/api/v1/configmaps' },
  { name: 'by label', path: collection, labels: 'on=yes' },
  { name: 'by name', path: collection, fields: `metadata.name=${lastName}` },
  { name: 'nothing ever happens', path: '/api/v1/secrets' },
]

export const step: Step = {
  name: 'clientnode',
  tier: 'default',
  minutes: 2,
  async run(context) {
    const dir = join(context.dir, 'store')
    let server = await context.ake({ dir })
    const config = new KubeConfig()
    config.loadFromFile(server.kubeconfig)
    const informers = wanted.map((one) => new Observed(config, one))
    await Promise.all(informers.map((one) => one.start()))
    const churn = new Churn(config.makeApiClient(CoreV1Api))
    const churned = churn.run()
    for (let count = 1; count <= restarts; count++) {
      const due = (count * writesMade) / (restarts + 1)
      while (churn.done < due) await pause(askAgainMs, undefined, { signal: context.signal })
      if (count % 2 === 0) await server.kill()
      else await server.stop()
      server = await context.ake({ dir, port: server.port })
      context.progress(`restart ${count} of ${restarts} at ${churn.done} writes`)
    }
    await churned
    const last = await churn.finish()
    return await verdict(context, { informers, last, done: churn.done })
  },
}

type Ended = { readonly informers: readonly Observed[]; readonly last: string; readonly done: number }

async function verdict({ signal }: StepContext, { informers, last, done }: Ended) {
  const faults: string[] = []
  for (const one of informers) faults.push(...(await one.judge(last, signal)).map((fault) => `${one.name}: ${fault}`))
  for (const one of informers) await one.stop()
  const failed = informers.filter((one) => faults.some((fault) => fault.startsWith(`${one.name}: `))).length
  const events = informers.reduce((sum, one) => sum + one.events.length, 0)
  const connects = informers.reduce((sum, one) => sum + one.connects, 0)
  const relists = informers.reduce((sum, one) => sum + one.lists - 1, 0)
  const figures =
    `${informers.length} informers, ${done} writes, ${restarts} restarts, half of them by kill -9: ` +
    `${events} events, ${connects} watches, ${relists} relists`
  return { passed: informers.length - failed, failed, notes: [figures, ...faults] }
}

/** An informer and what it told. */
class Observed {
  readonly name: string
  readonly events: string[] = []
  lists = 0
  connects = 0
  readonly #wanted: Wanted
  readonly #watch: Watch
  readonly #list: () => Promise<KubernetesListObject<KubernetesObject>>
  readonly #informer: ListWatch<KubernetesObject>
  /** The first list's version and how many objects it had. */
  #first: { version: string; size: number } | undefined
  #stopped = false

  constructor(config: KubeConfig, wanted: Wanted) {
    this.name = wanted.name
    this.#wanted = wanted
    this.#watch = new Watch(config)
    Object.assign(this.#watch, { requestTimeoutMs: patienceMs })
    const api = config.makeApiClient(CoreV1Api)
    const { path, labels, fields } = wanted
    const selectors = {
      ...(labels === undefined ? {} : { labelSelector: labels }),
      ...(fields === undefined ? {} : { fieldSelector: fields }),
    }
    this.#list = () => {
      if (path === '/api/v1/secrets') return api.listSecretForAllNamespaces()
      if (path === '/api/v1/configmaps') return api.listConfigMapForAllNamespaces()
      return api.listNamespacedConfigMap({ namespace, ...selectors })
    }
    const counted = async () => {
      this.lists++
      const list = await this.#list()
      this.#first ??= { version: list.metadata?.resourceVersion ?? '', size: list.items.length }
      return list
    }
    this.#informer = new ListWatch(path, this.#watch, counted, false, labels, fields)
    this.#informer.on('connect', () => {
      this.connects++
    })
    this.#informer.on('add', (object) => this.events.push(textOf('ADDED', object)))
    this.#informer.on('update', (object) => this.events.push(textOf('MODIFIED', object)))
    this.#informer.on('delete', (object) => this.events.push(textOf('DELETED', object)))
    this.#informer.on('error', () => {
      setTimeout(() => {
        if (!this.#stopped) void this.#informer.start()
      }, startAgainMs)
    })
  }

  start(): Promise<void> {
    return this.#informer.start()
  }

  stop(): Promise<void> {
    this.#stopped = true
    return this.#informer.stop()
  }

  /** What is wrong: a relist, an event missing or twice or out of order, another final state than a list's. */
  async judge(last: string, signal: AbortSignal): Promise<string[]> {
    const faults: string[] = []
    const first = this.#first ?? { version: '', size: 0 }
    const silent = this.#wanted.path === '/api/v1/secrets'
    const giveUpMs = performance.now() + settleMsMax
    while (!silent && !this.events.at(-1)?.endsWith(` ${last}`) && performance.now() < giveUpMs) {
      await pause(askAgainMs, undefined, { signal })
    }
    if (this.lists !== 1) faults.push(`it listed ${this.lists} times`)
    const truth = silent ? [] : await this.#uncut(first.version, last)
    const seen = this.events.slice(first.size)
    const at = truth.findIndex((event, index) => event !== seen[index])
    if (at >= 0) faults.push(`event ${at + 1} of ${truth.length} is ${seen[at]}, not ${truth[at]}`)
    else if (seen.length > truth.length) faults.push(`saw ${seen.length - truth.length} events too many`)
    const listed = await this.#list()
    const held = [...this.#informer.list()].map(plain).sort(byName)
    if (!isDeepStrictEqual(held, listed.items.map(plain).sort(byName)))
      faults.push('its objects are not those of a list')
    return faults
  }

  /** Everything after a version up to the last write, by one watch that nobody cuts. */
  async #uncut(version: string, last: string): Promise<string[]> {
    const events: string[] = []
    const { path, labels: labelSelector, fields: fieldSelector } = this.#wanted
    const done = Promise.withResolvers<void>()
    const query = { resourceVersion: version, labelSelector, fieldSelector }
    const take = (type: string, object: KubernetesObject) => {
      events.push(textOf(type, object))
      if (object.metadata?.resourceVersion === last) done.resolve()
    }
    const request = await this.#watch.watch(path, query, take, () => done.resolve())
    await done.promise
    request.abort()
    return events
  }
}

/** Lists' items have no kind, watched objects do; client-node makes dates of the times it knows in a list alone. */
function plain(object: KubernetesObject): { metadata?: { name?: string } } {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = JSON.parse(JSON.stringify(object))
  const made = rest.metadata?.creationTimestamp
  if (made !== undefined) rest.metadata.creationTimestamp = new Date(made).toISOString()
  for (const entry of rest.metadata?.managedFields ?? []) entry.time = new Date(entry.time).toISOString()
  return rest
}

function byName(a: { metadata?: { name?: string } }, b: { metadata?: { name?: string } }): number {
  return (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1
}

function textOf(type: string, { metadata }: KubernetesObject): string {
  return `${type} ${metadata?.namespace}/${metadata?.name} ${metadata?.uid} ${metadata?.resourceVersion}`
}

/** Writers that own their keys; after an error they look what is there. */
class Churn {
  done = 0
  readonly #api: CoreV1Api
  readonly #objects = new Map<string, V1ConfigMap | undefined>()

  constructor(api: CoreV1Api) {
    this.#api = api
  }

  async run(): Promise<void> {
    const loop = async (writer: number) => {
      for (let turn = 0; this.done < writesMade; turn++) {
        await this.#write(`map-${((turn * 31) % (keys / writers)) * writers + writer}`, turn)
      }
    }
    await Promise.all(Array.from({ length: writers }, (_, writer) => loop(writer)))
  }

  /** The version of the last write. */
  async finish(): Promise<string> {
    for (;;) {
      const before = this.done
      await this.#write(lastName, 1)
      const version = this.#objects.get(lastName)?.metadata?.resourceVersion
      if (this.done > before && version !== undefined) return version
    }
  }

  async #write(name: string, turn: number): Promise<void> {
    const metadata = { name, labels: { on: turn % 3 > 0 ? 'yes' : 'no' } }
    const body = { metadata, data: { turn: `${turn}`, done: `${this.done}` } }
    try {
      if (this.#objects.get(name) === undefined) {
        this.#objects.set(name, await this.#api.createNamespacedConfigMap({ namespace, body }))
      } else if (turn % 5 === 0) {
        await this.#api.deleteNamespacedConfigMap({ namespace, name })
        this.#objects.set(name, undefined)
      } else {
        this.#objects.set(name, await this.#api.replaceNamespacedConfigMap({ namespace, name, body }))
      }
      this.done++
    } catch {
      this.#objects.set(name, await this.#readBack(name))
    }
  }

  async #readBack(name: string): Promise<V1ConfigMap | undefined> {
    for (;;) {
      try {
        return await this.#api.readNamespacedConfigMap({ namespace, name })
      } catch (error) {
        if ((error as { code?: number }).code === 404) return undefined
        await pause(askAgainMs)
      }
    }
  }
}
