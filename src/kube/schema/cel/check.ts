/**
 * Rules as a definition brings them, before any object is held to them: fields they name must be there, and a rule must
 * come to a bool. The engine itself knows no types, so the schema is followed along each selection; what that does not
 * reach is left to the evaluation.
 */

import type { ASTNode } from '@marcbachmann/cel-js'
import type { FieldError } from '../../status.ts'
import { child, invalidField } from '../errors.ts'
import { META_FIELDS, type Rule, type Schema, valuesOf } from '../schema.ts'
import { parseExpression, usesOldSelf } from './cel.ts'
import { escapeName } from './value.ts'

type Place = {
  /** The root of a resource, where apiVersion, kind and metadata are known without being specified. */
  readonly root: boolean
  /** The part of the schema whose elements cannot be told from one another between two states of an object. */
  readonly uncorrelated: string | undefined
}

export function checkExpressions(
  rule: Rule,
  schema: Schema,
  path: string,
  { root, uncorrelated }: Place,
): FieldError[] {
  const found: FieldError[] = []
  const self = root ? withMeta(schema) : schema
  for (const key of ['rule', 'messageExpression'] as const) {
    const detail = rule[key] ? problemOf(rule[key], key, rule, self) : undefined
    if (detail !== undefined) found.push(invalidRule(child(path, key), rule, detail))
  }
  if (usesOldSelf(rule)) {
    if (uncorrelated !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`
      found.push(invalidField(child(path, 'rule'), rule.rule, detail))
    }
  } else if (rule.optionalOldSelf !== undefined) {
    const detail = 'may not be set if oldSelf is not used in rule'
    found.push(invalidField(child(path, 'optionalOldSelf'), rule.optionalOldSelf, detail))
  }
  return found
}

const TEXT: Schema = { type: 'string' }
const METADATA: Schema = { type: 'object', properties: { name: TEXT, generateName: TEXT } }

function withMeta(schema: Schema): Schema {
  const own = Object.entries(schema.properties ?? {}).filter(([name]) => !META_FIELDS.has(name))
  const properties = { ...Object.fromEntries(own), apiVersion: TEXT, kind: TEXT, metadata: METADATA }
  return { ...schema, properties }
}

function problemOf(source: string, key: 'rule' | 'messageExpression', rule: Rule, self: Schema): string | undefined {
  const title = key === 'rule' ? '' : 'messageExpression '
  const parsed = parseExpression(source, rule)
  if (parsed === undefined) return undefined
  if ('problem' in parsed) return `${title}compilation failed: ERROR: Syntax error: ${parsed.problem}`
  const walk = new Walk(source)
  const variables = new Map<string, Schema | undefined>([['self', self]])
  if (rule.optionalOldSelf !== true) variables.set('oldSelf', self)
  const result = walk.typeOf(parsed.ast, variables)
  if (walk.errors.length > 0) return `${title}compilation failed: ${walk.errors.join('\n')}`
  const type = parsed.type === 'dyn' ? (CEL_TYPES[result?.type ?? ''] ?? 'dyn') : parsed.type
  const wanted = key === 'rule' ? 'bool' : 'string'
  if (type === wanted || type === 'dyn') return undefined
  return key === 'rule' ? 'cel expression must evaluate to a bool' : 'messageExpression must evaluate to a string'
}

const CEL_TYPES: Readonly<Record<string, string>> = {
  array: 'list',
  boolean: 'bool',
  integer: 'int',
  number: 'double',
  object: 'map',
  string: 'string',
}

const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map'])

type Variables = ReadonlyMap<string, Schema | undefined>

/** Follows schemas through an expression; a schema stands for its type, undefined for any. */
class Walk {
  readonly errors: string[] = []
  readonly #source: string

  constructor(source: string) {
    this.#source = source
  }

  typeOf(node: ASTNode, variables: Variables, asked?: ASTNode): Schema | undefined {
    switch (node.op) {
      case 'id':
        return variables.get(node.args)
      case '.':
      case '.?': {
        const [target, name] = node.args
        return this.#select(this.typeOf(target, variables), name, asked ?? node)
      }
      case '[]': {
        const [target, index] = node.args
        this.typeOf(index, variables)
        return elements(this.typeOf(target, variables))
      }
      case 'call': {
        const [name, args] = node.args
        for (const arg of args) this.typeOf(arg, variables, name === 'has' ? node : undefined)
        return undefined
      }
      case 'rcall':
        return this.#method(node.args, variables)
      case '?:': {
        const [condition, ...branches] = node.args
        this.typeOf(condition, variables)
        return branches.map((branch) => this.typeOf(branch, variables))[0]
      }
      case 'value':
        return undefined
      default:
        for (const inner of nodesIn(node.args)) this.typeOf(inner, variables)
        return undefined
    }
  }

  #method([name, target, args]: readonly [string, ASTNode, readonly ASTNode[]], variables: Variables): undefined {
    const list = this.typeOf(target, variables)
    const [variable, ...bodies] = args
    const loops = LOOPS.has(name) && variable?.op === 'id' && bodies.length > 0
    // Whatever names a variable of its own in another way may hide what is known about it.
    const binds = target.op === 'id' && target.args === 'cel'
    if (binds || (loops && bodies.length > (name === 'map' ? 2 : 1))) return undefined
    if (!loops) for (const arg of args) this.typeOf(arg, variables)
    else {
      const item = list?.type === 'array' ? list.items : undefined
      for (const body of bodies) this.typeOf(body, new Map([...variables, [variable.args, item]]))
    }
    return undefined
  }

  #select(target: Schema | undefined, name: string, at: ASTNode): Schema | undefined {
    if (target?.type !== 'object') return undefined
    if (target.additionalProperties !== undefined) return valuesOf(target)
    for (const [key, property] of Object.entries(target.properties ?? {})) {
      if (escapeName(key) === name) {
        return property['x-kubernetes-embedded-resource'] === true ? withMeta(property) : property
      }
    }
    this.#report(at, `undefined field '${name}'`)
    return undefined
  }

  /** Go points at the dot, or at the parenthesis of a macro. */
  #report(node: ASTNode, what: string): void {
    const source = this.#source
    const at = node.op === 'call' ? source.indexOf('(', node.pos) : source.lastIndexOf('.', node.pos)
    const before = source.slice(0, at).split('\n')
    const column = before.at(-1)?.length ?? 0
    const line = source.split('\n')[before.length - 1] ?? ''
    this.errors.push(`ERROR: <input>:${before.length}:${column + 1}: ${what}\n | ${line}\n | ${'.'.repeat(column)}^`)
  }
}

function elements(target: Schema | undefined): Schema | undefined {
  return target?.type === 'array' ? target.items : target?.type === 'object' ? valuesOf(target) : undefined
}

/** The nodes among an operator's operands, which may lie in lists of lists. */
function nodesIn(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(nodesIn)
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : []
}

/** The real server shows its own struct, and escapes what could end a script. */
function invalidRule(path: string, rule: Rule, detail: string): FieldError {
  const shown = JSON.stringify({
    Rule: rule.rule,
    Message: rule.message ?? '',
    MessageExpression: rule.messageExpression ?? '',
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? '',
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  }).replace(/[<>&]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`)
  return { field: path, reason: 'FieldValueInvalid', text: `Invalid value: ${shown}: ${detail}` }
}
