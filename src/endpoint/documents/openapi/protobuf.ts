/**
 * OpenAPI documents in the protobuf form that older clients and Helm ask for, made from the same objects as their JSON.
 * Empty strings, zeros and false are not written, as in proto3; values of any shape travel as YAML.
 */
import { fromPlain } from '../../../kube/json/json.ts'
import { printYaml } from '../../../kube/json/yaml/yaml.ts'
import { type Messages, type OpenApiField, openApiMessages } from './messages.ts'

/** The whole of a document, or any message of it by name. */
export function openApiMessage(version: 'v2' | 'v3', name: string, value: unknown): Buffer {
  return message(openApiMessages(version), name, value)
}

/** A field of that message whose content is known already. */
export function openApiField(version: 'v2' | 'v3', name: string, member: string, content: Buffer): Buffer {
  const field = openApiMessages(version)
    .get(name)
    ?.find((one) => one.member === member)
  return delimited(field?.number ?? 0, content)
}

type Node = Readonly<Record<string, unknown>>

function message(messages: Messages, name: string, value: unknown): Buffer {
  const fields = messages.get(name) ?? []
  if (fields[0]?.member === '|') return alternative(messages, fields, value)
  const node = value as Node
  const members = new Set(fields.map(({ member }) => member))
  const pieces: Buffer[] = []
  for (const field of fields) {
    if (field.member === '*' || field.member === 'x-') {
      for (const [key, one] of Object.entries(node)) {
        const isExtension = members.has('x-') && key.startsWith('x-')
        if (members.has(key) || isExtension !== (field.member === 'x-')) continue
        pieces.push(delimited(field.number, named(key, content(messages, field.type, one))))
      }
    } else if (node[field.member] !== undefined) pieces.push(...written(messages, field, node[field.member]))
  }
  return Buffer.concat(pieces)
}

/** Nothing is written for a value that none of the alternatives can hold. */
function alternative(messages: Messages, fields: readonly OpenApiField[], value: unknown): Buffer {
  const field = choose(fields, value)
  if (field === undefined) return nothing
  if (field.many || isMessage(field.type))
    return Buffer.concat(written(messages, field, field.many ? [value].flat() : value))
  // A chosen value is written even if it is zero.
  return scalar(field, value)
}

function choose(fields: readonly OpenApiField[], value: unknown): OpenApiField | undefined {
  const of = (type: string) => fields.find((field) => field.type === type)
  if (typeof value === 'boolean') return of('b')
  if (typeof value === 'number') return of('d')
  if (typeof value === 'string' || Array.isArray(value)) return of('s')
  const node = value as Node
  if (typeof node.$ref === 'string' && of('Reference') !== undefined) return of('Reference')
  if (of('BodyParameter') !== undefined) return of(node.in === 'body' ? 'BodyParameter' : 'NonBodyParameter')
  if (of('QueryParameter') !== undefined) return of(kindsOfParameter.get(String(node.in)) ?? '')
  return fields.find(({ type }) => isMessage(type))
}

const kindsOfParameter: ReadonlyMap<string, string> = new Map([
  ['header', 'HeaderParameter'],
  ['query', 'QueryParameter'],
  ['path', 'PathParameter'],
])

function written(messages: Messages, field: OpenApiField, value: unknown): Buffer[] {
  if (field.many) return (value as unknown[]).map((one) => delimited(field.number, content(messages, field.type, one)))
  if (field.type === 'a' || isMessage(field.type))
    return [delimited(field.number, content(messages, field.type, value))]
  return value === '' || value === 0 || value === false ? [] : [scalar(field, value)]
}

function isMessage(type: string): boolean {
  return type.length > 1
}

/** What a length stands before. */
function content(messages: Messages, type: string, value: unknown): Buffer {
  if (type === 's') return Buffer.from(String(value))
  return type === 'a' ? delimited(2, Buffer.from(yaml(value))) : message(messages, type, value)
}

function scalar({ number, type }: OpenApiField, value: unknown): Buffer {
  if (type === 's') return delimited(number, Buffer.from(String(value)))
  if (type === 'b') return Buffer.concat([varint(number * 8), Buffer.from([value === true ? 1 : 0])])
  if (type === 'l') return Buffer.concat([varint(number * 8), varint(Number(value))])
  const double = Buffer.alloc(8)
  double.writeDoubleLE(Number(value))
  return Buffer.concat([varint(number * 8 + 1), double])
}

const nothing = Buffer.alloc(0)

/** Members in their order, each level at the next multiple of four: that is how the library writes YAML that these documents are made with. */
function yaml(value: unknown, column = 0): string {
  const indent = ' '.repeat(column)
  const deeper = (Math.floor(column / 4) + 1) * 4
  if (Array.isArray(value) && value.length > 0) {
    return value.map((one) => `- ${yaml(one, column + 2)}`).join(indent)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0) {
    const members = Object.entries(value).map(([key, one]) => {
      const isBlock = typeof one === 'object' && one !== null && Object.keys(one).length > 0
      const rest = isBlock ? `\n${' '.repeat(deeper)}${yaml(one, deeper)}` : ` ${yaml(one)}`
      return `${yamlText(key)}:${rest}`
    })
    return members.join(indent)
  }
  return typeof value === 'string' ? `${yamlText(value)}\n` : printYaml(fromPlain(value))
}

/** Words for yes and no that only old YAML knows. */
const oldBooleans = /^(?:y|n|yes|no|on|off)$/i

/** On one line, however long, as a key is: of which those beyond 128 bytes stand behind a mark. */
function yamlText(text: string): string {
  if (oldBooleans.test(text)) return text
  const printed = printYaml(fromPlain({ [text]: null }))
  return printed.startsWith('? ') ? printed.slice(2, -': null\n'.length - 1) : printed.slice(0, -': null\n'.length)
}

function named(name: string, value: Buffer): Buffer {
  return Buffer.concat([delimited(1, Buffer.from(name)), delimited(2, value)])
}

function delimited(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}
