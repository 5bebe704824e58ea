/**
 * `node conformance/facts/protobuf.ts` writes src/kube/protobuf/messages.txt anew: what the Go types of Kubernetes say of
 * their protobuf and JSON forms (conformance/protobuf), compared field by field with the published generated.proto files.
 * Also filled.recorded.txt, for tests: an object of every kind in both forms, with all of its fields.
 */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { builtinFacts } from '../../src/kube/builtin.ts'
import { buildGoProgram } from '../goprogram.ts'

const run = promisify(execFile)
const folder = join(import.meta.dirname, '..', '..', 'src', 'kube', 'protobuf')

/** The modules whose types are served. */
const modules = ['k8s.io/api', 'k8s.io/apimachinery', 'k8s.io/apiextensions-apiserver', 'k8s.io/kube-aggregator']
/** Group versions that answers have and no resource is served in. */
const answered = ['meta.k8s.io/v1', 'apidiscovery.k8s.io/v2', 'apidiscovery.k8s.io/v2beta1']
/** The program's whole output. */
const outputMax = 8 << 20

type Kind = { readonly apiVersion: string; readonly kind: string; readonly message: string }
type Field = {
  readonly json: string
  readonly go: string
  readonly proto: string
  readonly number: number
  readonly shape: 'one' | 'many' | 'map'
  readonly type: string
  readonly pointer?: boolean
  readonly omitEmpty?: boolean
  readonly omitZero?: boolean
  readonly inline?: boolean
}
type Message = {
  readonly name: string
  readonly form: 'struct' | 'slice'
  /** Its JSON is of its own making. */
  readonly own?: boolean
  readonly fields: readonly Field[] | null
}

async function main(): Promise<void> {
  const program = await buildGoProgram('protobuf', console.error)
  const { stdout } = await run(program, { maxBuffer: outputMax })
  const lines = stdout.trim().split('\n')
  const parsed = lines.map((line) => JSON.parse(line) as Kind | Message)
  const messages = new Map(parsed.filter((line) => 'name' in line).map((message) => [message.name, message]))
  const kinds = servedKinds(parsed.filter((line) => 'kind' in line))
  const used = await published(reachable(kinds, messages))
  const text = print(kinds, used)
  await writeFile(join(folder, 'messages.txt'), text)
  console.error(`${kinds.length} kinds, ${used.length} messages, ${text.length} bytes`)
  await writeFile(join(folder, 'filled.recorded.txt'), await fill(program, kinds))
}

/** Kinds that hold a pod's template, or schemas that hold schemas: with every field they would be very large. */
const partly =
  /^(DaemonSet|Deployment|ReplicaSet|ReplicationController|StatefulSet|Job|CronJob|PodTemplate|CustomResource.*)$/

type Filled = { readonly apiVersion: string; readonly kind: string; readonly json: string; readonly message: string }

async function fill(program: string, kinds: readonly Kind[]): Promise<string> {
  const wanted = kinds
    .filter(({ kind }) => !kind.endsWith('List') && !kind.endsWith('Options'))
    .map(({ apiVersion, kind }) => `${apiVersion} ${kind} ${partly.test(kind) ? 40 : 100}`)
  const { stdout } = await run(program, wanted, { maxBuffer: outputMax })
  const objects = stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text) as Filled)
  return objects
    .map(({ apiVersion, kind, message, json }) => `${apiVersion} ${kind} ${message} ${Buffer.from(json, 'base64')}\n`)
    .join('')
}

function servedKinds(kinds: readonly Kind[]): Kind[] {
  const served = new Set(answered)
  for (const { name, versions } of builtinFacts().groups) {
    for (const version of versions) served.add(name === '' ? version : `${name}/${version}`)
  }
  return kinds.filter(({ apiVersion }) => served.has(apiVersion))
}

/** What the kinds need, each before what it holds. */
function reachable(kinds: readonly Kind[], messages: ReadonlyMap<string, Message>): Message[] {
  const found = new Map<string, Message>()
  const waiting = kinds.map(({ message }) => message)
  for (const name of waiting) {
    if (found.has(name)) continue
    const message = messages.get(name)
    if (message === undefined) throw new Error(`nothing is known of ${name}`)
    found.set(name, message)
    for (const { type } of message.fields ?? []) if (type.includes('.')) waiting.push(type)
  }
  return [...found.values()]
}

type Declared = { readonly label: string; readonly type: string; readonly name: string; readonly number: number }

/**
 * Numbers, types and names of every field have to be the published ones, and none may be missing. What Go keeps in another
 * form (times, quantities, lists of strings) has the published fields.
 */
async function published(messages: readonly Message[]): Promise<Message[]> {
  const folders = await moduleFolders()
  const files = new Map<string, Map<string, Declared[]>>()
  const checked: Message[] = []
  for (const message of messages) {
    const path = message.name.slice(0, message.name.lastIndexOf('.'))
    const declared = files.get(path) ?? parseProto(await readFile(protoFile(folders, path), 'utf8'))
    files.set(path, declared)
    const theirs = declared.get(message.name.slice(path.length + 1))
    if (theirs === undefined) throw new Error(`${message.name} is in no .proto file`)
    const fields = message.fields ?? theirs.map(fieldOf)
    const ours = fields.map((field) => line(declaredBy(field, path))).sort()
    const same = ours.join('\n') === theirs.map(line).sort().join('\n')
    if (!same) throw new Error(`${message.name}:\n${ours.join('\n')}\nis published as\n${theirs.map(line).join('\n')}`)
    checked.push({ ...message, fields })
  }
  return checked
}

function fieldOf({ label, type, name, number }: Declared): Field {
  // The reader of quantities is written by hand, and has its own name for what would be a keyword.
  const go = name === 'string' ? 'String_' : name.charAt(0).toUpperCase() + name.slice(1)
  return { json: '', go, proto: name, number, shape: label === 'repeated' ? 'many' : 'one', type }
}

const line = ({ label, type, name, number }: Declared): string => `${label} ${type} ${name} = ${number}`

async function moduleFolders(): Promise<Map<string, string>> {
  const cwd = join(import.meta.dirname, '..', 'protobuf')
  const { stdout } = await run('go', ['list', '-m', '-f', '{{.Path}} {{.Dir}}', ...modules], { cwd })
  return new Map(
    stdout
      .trim()
      .split('\n')
      .map((text) => text.split(' ') as [string, string]),
  )
}

function protoFile(folders: ReadonlyMap<string, string>, path: string): string {
  const module = modules.find((name) => path.startsWith(`${name}/`)) ?? ''
  return join(folders.get(module) ?? '', path.slice(module.length), 'generated.proto')
}

function parseProto(text: string): Map<string, Declared[]> {
  const messages = new Map<string, Declared[]>()
  const bare = text.replace(/\/\/.*$/gm, '')
  for (const [, name = '', body = ''] of bare.matchAll(/message (\w+) \{([^}]*)\}/g)) {
    const fields = [...body.matchAll(/(?:(optional|repeated) )?(map<[^>]*>|[\w.]+) (\w+) = (\d+);/g)].map(
      ([, label = 'map', type = '', field = '', number]) => ({ label, type, name: field, number: Number(number) }),
    )
    messages.set(name, fields)
  }
  return messages
}

/** How a .proto file in the same package would put it. */
function declaredBy({ shape, type, proto, number }: Field, path: string): Declared {
  const scalars: Record<string, string> = { float64: 'double' }
  const named = type.startsWith(`${path}.`) ? type.slice(path.length + 1) : `.${type.replaceAll('/', '.')}`
  const element = type.includes('.') ? named : (scalars[type] ?? type)
  if (shape === 'map') return { label: 'map', type: `map<string, ${element}>`, name: proto, number }
  return { label: shape === 'many' ? 'repeated' : 'optional', type: element, name: proto, number }
}

/** See src/kube/protobuf/facts.ts for the form. */
function print(kinds: readonly Kind[], messages: readonly Message[]): string {
  const numbers = new Map(messages.map(({ name }, index) => [name, index]))
  const byVersion = new Map<string, string[]>()
  for (const { apiVersion, kind, message } of kinds) {
    const own = byVersion.get(apiVersion) ?? []
    byVersion.set(apiVersion, own)
    own.push(`${kind}=${numbers.get(message)}`)
  }
  // Options and watch events are of every group version; meta.k8s.io/v1 is named only for what it adds.
  const all = [...byVersion].filter(([apiVersion]) => apiVersion !== 'meta.k8s.io/v1').map(([, entries]) => entries)
  const shared = (all[0] ?? []).filter((entry) => all.every((entries) => entries.includes(entry)))
  const lines = [`* ${shared.join(' ')}`]
  for (const [apiVersion, entries] of byVersion) {
    lines.push(`${apiVersion} ${entries.filter((entry) => !shared.includes(entry)).join(' ')}`)
  }
  lines.push('')
  for (const { name, form, own, fields } of messages) {
    const short = name.slice(name.lastIndexOf('.') + 1)
    const mark = form === 'slice' ? '[' : own ? '!' : ''
    lines.push([`${mark}${short}`, ...(fields ?? []).map((each) => printField(each, numbers))].join(' '))
  }
  return `${lines.join('\n')}\n`
}

const letters: Record<string, string> = { string: 's', bool: 'b', int32: 'i', int64: 'l', float64: 'f', bytes: 'y' }

function printField(field: Field, numbers: ReadonlyMap<string, number>): string {
  const shape = { one: field.pointer ? '*' : '', many: '[', map: '{' }[field.shape]
  const type = letters[field.type] ?? String(numbers.get(field.type))
  const flags = `${field.inline ? '~' : ''}${field.omitEmpty ? '?' : ''}${field.omitZero ? '0' : ''}`
  const usual = field.json.charAt(0).toUpperCase() + field.json.slice(1)
  const json = field.json === '-' || field.inline ? '' : field.json
  return `${json}:${field.number}:${shape}${type}${flags}${field.go === usual ? '' : `:${field.go}`}`
}

await main()
