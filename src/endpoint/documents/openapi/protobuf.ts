/**
 * OpenAPI documents in the protobuf form that older clients and Helm ask for, made from the same objects as their JSON.
 * Empty strings, zeros and false are not written, as in proto3; values of any shape travel as YAML.
 *
 * A message stands behind its length, so it is written from its end: a length is known once all behind it is there, and no
 * part is copied into the one around it.
 */
import { fromPlain } from '../../../kube/json/json.ts'
import { printYaml } from '../../../kube/json/yaml/yaml.ts'
import { type Messages, type OpenApiField, openApiMessages } from './messages.ts'

/** The whole of a document, or any message of it by name. */
export function openApiMessage(version: 'v2' | 'v3', name: string, value: unknown): Buffer {
  const backwards = new Backwards(openApiMessages(version))
  backwards.message(name, value)
  return backwards.taken()
}

/** A field of that message whose content is known already. */
export function openApiField(version: 'v2' | 'v3', name: string, member: string, content: Buffer): Buffer {
  const messages = openApiMessages(version)
  const field = messages.get(name)?.find((one) => one.member === member)
  const head = new Backwards(messages)
  head.length(field?.number ?? 0, content.length)
  return Buffer.concat([head.taken(), content])
}

type Node = Readonly<Record<string, unknown>>

/** Most parts of a document fit. */
const deskBytes = 16 * 1024

class Backwards {
  readonly #messages: Messages
  #bytes = Buffer.allocUnsafeSlow(deskBytes)
  /** Where what is written begins. */
  #start = deskBytes

  constructor(messages: Messages) {
    this.#messages = messages
  }

  taken(): Buffer {
    return Buffer.from(this.#bytes.subarray(this.#start))
  }

  message(name: string, value: unknown): void {
    const fields = this.#messages.get(name) ?? []
    if (fields[0]?.member === '|') this.#alternative(fields, value)
    else this.#members(fields, value as Node)
  }

  #members(fields: readonly OpenApiField[], node: Node): void {
    for (let i = fields.length - 1; i >= 0; i--) {
      const field = fields[i] as OpenApiField
      if (field.member === '*' || field.member === 'x-') this.#byName(fields, field, node)
      else if (node[field.member] !== undefined) this.#field(field, node[field.member])
    }
  }

  /** Before what is written already. */
  length(number: number, bytes: number): void {
    this.#varint(bytes)
    this.#varint(number * 8 + 2)
  }

  #byName(fields: readonly OpenApiField[], field: OpenApiField, node: Node): void {
    const keys = Object.keys(node)
    for (let i = keys.length - 1; i >= 0; i--) {
      const key = keys[i] as string
      const isExtension = key.startsWith('x-') && fields.some(({ member }) => member === 'x-')
      if (isExtension !== (field.member === 'x-') || fields.some(({ member }) => member === key)) continue
      const end = this.#written
      this.#content(2, field.type, node[key])
      this.#text(1, key)
      this.length(field.number, this.#written - end)
    }
  }

  /** Nothing is written for a value that none of the alternatives can hold. */
  #alternative(fields: readonly OpenApiField[], value: unknown): void {
    const field = choose(fields, value)
    if (field === undefined) return
    if (field.many || isMessage(field.type)) this.#field(field, field.many ? [value].flat() : value)
    // A chosen value is written even if it is zero.
    else this.#scalar(field, value)
  }

  #field(field: OpenApiField, value: unknown): void {
    const { number, type } = field
    if (field.many) for (const one of (value as unknown[]).toReversed()) this.#content(number, type, one)
    else if (type === 'a' || isMessage(type)) this.#content(number, type, value)
    else if (value !== '' && value !== 0 && value !== false) this.#scalar(field, value)
  }

  /** With its length before it. */
  #content(number: number, type: string, value: unknown): void {
    if (type === 's') {
      this.#text(number, String(value))
      return
    }
    const end = this.#written
    if (type === 'a') this.#text(2, yaml(value))
    else this.message(type, value)
    this.length(number, this.#written - end)
  }

  #scalar({ number, type }: OpenApiField, value: unknown): void {
    if (type === 's') this.#text(number, String(value))
    else if (type === 'd') {
      this.#make(8)
      this.#bytes.writeDoubleLE(Number(value), this.#start)
      this.#varint(number * 8 + 1)
    } else {
      this.#varint(type === 'b' ? Number(value === true) : Number(value))
      this.#varint(number * 8)
    }
  }

  #text(number: number, text: string): void {
    const length = Buffer.byteLength(text)
    this.#make(length)
    this.#bytes.write(text, this.#start)
    this.length(number, length)
  }

  #varint(value: number): void {
    let length = 1
    for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) length++
    this.#make(length)
    let rest = value
    for (let at = this.#start; at < this.#start + length - 1; at++, rest = Math.floor(rest / 128))
      this.#bytes[at] = (rest & 0x7f) | 0x80
    this.#bytes[this.#start + length - 1] = rest
  }

  get #written(): number {
    return this.#bytes.length - this.#start
  }

  /** Room for so many bytes, before what is there. */
  #make(length: number): void {
    if (length > this.#start) {
      const written = this.#bytes.subarray(this.#start)
      const larger = Buffer.allocUnsafeSlow(this.#bytes.length * 2 + length)
      written.copy(larger, larger.length - written.length)
      this.#start = larger.length - written.length
      this.#bytes = larger
    }
    this.#start -= length
  }
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

function isMessage(type: string): boolean {
  return type.length > 1
}

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
