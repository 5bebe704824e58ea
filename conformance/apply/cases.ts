/**
 * The named cases of server-side apply, read from the YAML files in `cases/`: kind → name of the case → steps. A step is
 * `[quietly] [verb] manager [Kind] [@name] [/subresource] [?query] [~user-agent]: body`; without a verb it is an apply.
 * Bodies name only what matters: kind and name are added, `spec.a.b` is a path, `pods.` and `main.` lead into a
 * Deployment's pods and their container `main`, and `$service` is the complete object of that name in the corpus.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { load } from 'js-yaml'
import * as fixtures from '../corpus/fixtures.ts'
import { group } from './gadget.ts'
import * as verbs from './scenario.ts'
import { type Fields, type Kind, type More, type Scenario, type Step, scenario } from './scenario.ts'

const folder = join(import.meta.dirname, 'cases')

const kinds: Readonly<Record<string, Kind>> = {
  ConfigMap: { apiVersion: 'v1', kind: 'ConfigMap' },
  Secret: { apiVersion: 'v1', kind: 'Secret' },
  ServiceAccount: { apiVersion: 'v1', kind: 'ServiceAccount' },
  Service: { apiVersion: 'v1', kind: 'Service' },
  Pod: { apiVersion: 'v1', kind: 'Pod' },
  Node: { apiVersion: 'v1', kind: 'Node' },
  Namespace: { apiVersion: 'v1', kind: 'Namespace' },
  ReplicationController: { apiVersion: 'v1', kind: 'ReplicationController' },
  PersistentVolume: { apiVersion: 'v1', kind: 'PersistentVolume' },
  PersistentVolumeClaim: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  Deployment: { apiVersion: 'apps/v1', kind: 'Deployment' },
  StatefulSet: { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  DaemonSet: { apiVersion: 'apps/v1', kind: 'DaemonSet' },
  ReplicaSet: { apiVersion: 'apps/v1', kind: 'ReplicaSet' },
  Job: { apiVersion: 'batch/v1', kind: 'Job' },
  CronJob: { apiVersion: 'batch/v1', kind: 'CronJob' },
  Autoscaler: { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' },
  Autoscaler1: { apiVersion: 'autoscaling/v1', kind: 'HorizontalPodAutoscaler' },
  Role: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' },
  NetworkPolicy: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
  Ingress: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
  PodDisruptionBudget: { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
  StorageClass: { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' },
  Lease: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
  Definition: { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  Gadget: { apiVersion: `${group}/v1`, kind: 'Gadget' },
  Gadget2: { apiVersion: `${group}/v2`, kind: 'Gadget' },
  Opening: { apiVersion: `${group}/v1`, kind: 'Opening' },
  Ripen: { apiVersion: `${group}/v1`, kind: 'Ripen' },
  Harden: { apiVersion: `${group}/v1`, kind: 'Harden' },
  Close: { apiVersion: `${group}/v1`, kind: 'Close' },
}

type Key = {
  readonly verb: string
  readonly manager: string
  readonly kind: Kind
  readonly more: More
  readonly quiet?: boolean
}

export async function readCases(): Promise<Scenario[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).toSorted()
  const found = await Promise.all(
    files.map(async (file) => parseCases(file, await readFile(join(folder, file), 'utf8'))),
  )
  const scenarios = found.flat()
  const names = scenarios.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw new Error(`two cases are named ${twice}`)
  return scenarios
}

function parseCases(file: string, text: string): Scenario[] {
  const sections = load(text) as Record<string, Record<string, unknown[]>>
  return Object.entries(sections).flatMap(([section, cases]) => {
    const kind = kinds[section]
    if (kind === undefined) throw new Error(`${file} has cases of an unknown kind ${section}`)
    return Object.entries(cases).map(([name, steps]) =>
      scenario(`${file.replace('.yaml', '')}/${name}`, ...steps.map((step) => parseStep(step, kind))),
    )
  })
}

function parseStep(step: unknown, kind: Kind): Step {
  const [key, body] =
    typeof step === 'string' ? [step, undefined] : (Object.entries(step as Fields)[0] as [string, unknown])
  return makeStep(parseKey(key, kind), body)
}

function parseKey(key: string, kind: Kind): Key {
  let parsed: Key = { verb: 'apply', manager: '', kind, more: {} }
  const [words, agent] = key.split(' ~') as [string, string | undefined]
  if (agent !== undefined) parsed = { ...parsed, more: { headers: { 'user-agent': agent } } }
  for (const word of words.split(' ')) {
    const { more } = parsed
    if (word.startsWith('/')) parsed = { ...parsed, more: { ...more, sub: word.slice(1) } }
    else if (word.startsWith('?')) parsed = { ...parsed, more: { ...more, query: word.slice(1) } }
    else if (word.startsWith('@')) parsed = { ...parsed, more: { ...more, name: word.slice(1) } }
    else if (word === 'quietly') parsed = { ...parsed, quiet: true }
    else if (word in kinds) parsed = { ...parsed, kind: kinds[word] as Kind }
    else if (word in makers) parsed = { ...parsed, verb: word }
    else parsed = { ...parsed, manager: word === '-' ? '' : word }
  }
  return parsed
}

const makers: Readonly<Record<string, (key: Key, body: unknown) => Step>> = {
  apply: ({ manager, kind, more }, body) => verbs.apply(manager, whole(kind, body), { ...more, at: kind }),
  force: ({ manager, kind, more }, body) => verbs.force(manager, whole(kind, body), { ...more, at: kind }),
  text: ({ manager, kind, more }, body) => verbs.applyText(manager, kind, String(body), more),
  create: ({ manager, kind, more }, body) => verbs.create(manager, whole(kind, body), { ...more, at: kind }),
  update: ({ manager, kind, more }, body) => verbs.update(manager, whole(kind, body), { ...more, at: kind }),
  edit: ({ manager, kind, more }, body) => verbs.edit(manager, kind, body as Fields, more),
  merge: ({ manager, kind, more }, body) => verbs.merge(manager, kind, body, more),
  json: ({ manager, kind, more }, body) => verbs.json(manager, kind, body, more),
  strategic: ({ manager, kind, more }, body) => verbs.strategic(manager, kind, body, more),
  read: ({ kind, more }) => verbs.read(kind, more),
  delete: ({ kind, more }) => verbs.remove(kind, more),
}

function makeStep(key: Key, body: unknown): Step {
  const maker = makers[key.verb]
  if (maker === undefined) throw new Error(`${key.verb} is no verb`)
  return { ...maker(key, body), ...(key.quiet === true ? { quiet: true } : {}) }
}

function whole(kind: Kind, body: unknown): Fields & Kind {
  if (typeof body === 'string') return complete(body)
  const { $, ...given } = (body ?? {}) as Fields
  const start = $ === undefined ? { ...kind, metadata: { name: '<n>' } } : complete(String($))
  return Object.entries(given).reduce<Fields & Kind>((made, [path, value]) => placed(made, pathOf(path), value), start)
}

const shortcuts: readonly (readonly [string, readonly string[]])[] = [
  ['main', ['spec', 'template', 'spec', 'containers', 'main']],
  ['pods', ['spec', 'template', 'spec']],
]

function pathOf(path: string): readonly string[] {
  const [first = '', ...rest] = path.split('.')
  return [...(shortcuts.find(([name]) => name === first)?.[1] ?? [first]), ...rest]
}

/** Lists on the way are of named elements. */
function placed<T>(held: T, path: readonly string[], value: unknown): T {
  const [first, ...rest] = path as [string, ...string[]]
  if (path.length === 0) return value as T
  const fields = (held ?? {}) as Fields
  if (first === 'containers' && rest.length > 0) {
    const name = rest[0] as string
    const list = (fields[first] ?? []) as readonly Fields[]
    const element = list.find((one) => one.name === name) ?? { name }
    const next = rest.length === 1 ? { ...element, ...(value as Fields) } : placed(element, rest.slice(1), value)
    return { ...fields, [first]: [...list.filter((one) => one.name !== name), next] } as T
  }
  return { ...fields, [first]: placed(fields[first], rest, value) } as T
}

function complete(reference: string): Fields & Kind {
  const made = (fixtures as unknown as Record<string, (name: string, ...more: unknown[]) => Fields & Kind>)[
    reference.slice(1)
  ]
  if (made === undefined) throw new Error(`the corpus has no ${reference}`)
  return made('<n>')
}
