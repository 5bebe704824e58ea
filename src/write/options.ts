/** The options of write requests: read from the query (or, for deletes, from the body) and validated as the real ones. */

import { isPrintable, parseInt64 } from '../kube/json/gotext.ts'
import { field, isNumber, isObject, type Json, text } from '../kube/json/json.ts'
import { forbiddenField, invalidField, requiredField, tooLong, unsupportedField } from '../kube/schema/errors.ts'
import { badRequest, type FieldError, invalid } from '../kube/status.ts'
import { goKind, parseBody } from './body.ts'
import { unregistered } from './protobufbody.ts'
import type { WriteRequest } from './write.ts'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'
export type WriteOptions = {
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidation
  /** In whose name the fields are written: as the request says, or the program that sent it. */
  readonly manager: string
  /** Of an apply: fields that belong to others are taken from them. */
  readonly force: boolean
}

const managerBytesMax = 128 // the real server's
const directives = ['', 'Ignore', 'Strict', 'Warn']

export function readOptions(
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  request: WriteRequest,
): WriteOptions {
  const { query } = request
  const found: FieldError[] = []
  const manager = query('fieldManager') ?? ''
  if (kind === 'PatchOptions') {
    if (request.patchKind === 'apply') {
      if (manager === '') found.push(requiredField('fieldManager', 'is required for apply patch'))
    } else if (query('force') !== undefined) {
      found.push(forbiddenField('force', 'may not be specified for non-apply patch'))
    }
  }
  found.push(...managerFaults('fieldManager', manager))
  const dryRun = query('dryRun')
  found.push(...dryRunFaults(dryRun === undefined ? [] : [dryRun]))
  const directive = query('fieldValidation') ?? ''
  if (!directives.includes(directive)) found.push(unsupportedField('fieldValidation', directive, directives))
  if (found.length > 0) throw invalid('meta.k8s.io', kind, '', found)
  return {
    dryRun: dryRun !== undefined,
    fieldValidation: directive === '' ? 'Warn' : (directive as FieldValidation),
    manager: manager === '' ? programOf(request.userAgent ?? '') : manager,
    force: !/^(false|0)$/i.test(query('force') ?? 'false'),
  }
}

/** The first word of a User-Agent, cut to what a manager's name may be. */
function programOf(userAgent: string): string {
  let name = ''
  for (const character of userAgent.split('/')[0] ?? '') {
    if (!isPrintable(character)) continue
    if (Buffer.byteLength(name) + Buffer.byteLength(character) > managerBytesMax) break
    name += character
  }
  return name
}

/** A name that cannot be printed could not be told from another one; positions are of bytes. */
export function managerFaults(field: string, manager: string): FieldError[] {
  const found = Buffer.byteLength(manager) > managerBytesMax ? [tooLong(field, managerBytesMax)] : []
  let at = 0
  for (const character of manager) {
    if (!isPrintable(character)) {
      const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
      found.push(invalidField(field, manager, `invalid character U+${code} (at position ${at})`))
    }
    at += Buffer.byteLength(character)
  }
  return found
}

function dryRunFaults(values: string[]): FieldError[] {
  return values.every((value) => value === 'All') ? [] : [unsupportedField('dryRun', values, ['All'])]
}

export type DeleteOptions = {
  readonly gracePeriodSeconds: number | undefined
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
  readonly orphanDependents: boolean | undefined
  readonly propagationPolicy: string | undefined
  readonly dryRun: boolean
}

export const plainDelete: DeleteOptions = {
  gracePeriodSeconds: undefined,
  uid: undefined,
  resourceVersion: undefined,
  orphanDependents: undefined,
  propagationPolicy: undefined,
  dryRun: false,
}

const policies = ['Foreground', 'Background', 'Orphan', 'nil']

/** A body, if there is one, takes the place of the query. */
export async function readDeleteOptions(request: WriteRequest): Promise<DeleteOptions> {
  const { body } = request
  const { dryRun, ...options } =
    body === undefined || body.length === 0 ? fromQuery(request) : await fromBody(request, body)
  const found: FieldError[] = []
  const policy = options.propagationPolicy
  if (policy !== undefined) {
    if (options.orphanDependents !== undefined) {
      const detail = 'orphanDependents and deletionPropagation cannot be both set'
      found.push(invalidField('propagationPolicy', policy, detail))
    }
    if (!policies.slice(0, 3).includes(policy)) found.push(unsupportedField('propagationPolicy', policy, policies))
  }
  found.push(...dryRunFaults(dryRun))
  if (found.length > 0) throw invalid('meta.k8s.io', 'DeleteOptions', '', found)
  return { ...options, dryRun: dryRun.length > 0 }
}

type Unchecked = Omit<DeleteOptions, 'dryRun'> & { readonly dryRun: string[] }

function fromQuery({ query }: WriteRequest): Unchecked {
  const orphan = query('orphanDependents')
  const dryRun = query('dryRun')
  const grace = query('gracePeriodSeconds')
  return {
    ...plainDelete,
    gracePeriodSeconds: grace === undefined ? undefined : wholeNumber(grace),
    orphanDependents: orphan === undefined ? undefined : !/^(false|0)$/i.test(orphan),
    propagationPolicy: query('propagationPolicy'),
    dryRun: dryRun === undefined ? [] : [dryRun],
  }
}

function wholeNumber(source: string): number {
  const parsed = parseInt64(source)
  if ('fault' in parsed) throw badRequest(parsed.fault)
  return Number(parsed.value)
}

async function fromBody(request: WriteRequest, body: Buffer): Promise<Unchecked> {
  // Clients name the group of what they delete as often as the options' own.
  const expected = { apiVersion: 'meta.k8s.io/v1', kind: 'DeleteOptions', anyVersion: true }
  const parsed = await parseBody({ ...request, body }, expected)
  const isFault = 'fault' in parsed
  const claimed = isFault
    ? parsed.type
    : { kind: text(parsed.tree, 'kind'), apiVersion: text(parsed.tree, 'apiVersion') }
  const kind = claimed?.kind ?? ''
  if (kind !== '' && kind !== 'DeleteOptions') {
    const version = claimed?.apiVersion || 'meta.k8s.io/v1'
    throw badRequest(unregistered({ apiVersion: version, kind }))
  }
  if (isFault) throw badRequest(parsed.fault)
  const { tree } = parsed
  const typed = <T>(type: string, fits: (value: Json) => T | undefined, ...path: string[]): T | undefined => {
    const value = field(tree, ...path)
    if (value === undefined || value === null) return undefined
    const fitting = fits(value)
    if (fitting !== undefined) return fitting
    const name = ['DeleteOptions', ...path].join('.')
    throw badRequest(`json: cannot unmarshal ${goKind(value)} into Go struct field ${name} of type ${type}`)
  }
  typed('v1.Preconditions', (value) => (isObject(value) ? value : undefined), 'preconditions')
  const aString = (value: Json) => (typeof value === 'string' ? value : undefined)
  const strings = (value: Json) =>
    Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : undefined
  return {
    gracePeriodSeconds: typed(
      'int64',
      (value) => (isNumber(value) ? asNumber(value) : undefined),
      'gracePeriodSeconds',
    ),
    uid: typed('types.UID', aString, 'preconditions', 'uid'),
    resourceVersion: typed('string', aString, 'preconditions', 'resourceVersion'),
    orphanDependents: typed('bool', (value) => (typeof value === 'boolean' ? value : undefined), 'orphanDependents'),
    propagationPolicy: typed('v1.DeletionPropagation', aString, 'propagationPolicy'),
    dryRun: typed('[]string', strings, 'dryRun') ?? [],
  }
}

function asNumber(value: Json): number {
  return Number(typeof value === 'object' && value !== null && 'source' in value ? value.source : value)
}
