/**
 * The Kubernetes `Status`: every refusal this program makes is one of these, thrown by name where the fault is found and
 * rendered in one place (endpoint/answer/respond). Texts are those of kube-apiserver, because clients match on them.
 */
import { quoted } from './json/gotext.ts'

export type StatusCause = { reason?: string; message?: string; field?: string }

export type StatusDetails = {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: readonly StatusCause[]
  retryAfterSeconds?: number
}

/** The wire form, key order as kube-apiserver prints it. */
export type Status = {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: { continue?: string; remainingItemCount?: number }
  status: 'Success' | 'Failure'
  message?: string
  reason?: string
  details?: StatusDetails
  code?: number
}

export class StatusError extends Error {
  readonly status: Status

  constructor(status: Status) {
    super(status.message ?? status.reason ?? 'failure')
    this.name = 'StatusError'
    this.status = status
  }

  get code(): number {
    return this.status.code ?? 500
  }
}

type Named = { readonly group: string; readonly resource: string }

/** `deployments.apps`, or `pods` in the core group: how messages name a resource. */
export function qualified(of: Named): string {
  return of.group === '' ? of.resource : `${of.resource}.${of.group}`
}

export function failure(code: number, reason: string, message: string, details?: StatusDetails): StatusError {
  const status: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message }
  if (reason !== '') status.reason = reason
  if (details !== undefined) status.details = details
  status.code = code
  return new StatusError(status)
}

/** Details carry the resource's plural in `kind`, as kube-apiserver does for everything but validation errors. */
function detailsOf(of: Named, name: string): StatusDetails {
  const details: StatusDetails = {}
  if (name !== '') details.name = name
  if (of.group !== '') details.group = of.group
  details.kind = of.resource
  return details
}

export function notFound(of: Named, name: string): StatusError {
  return failure(404, 'NotFound', `${qualified(of)} ${quoted(name)} not found`, detailsOf(of, name))
}

/** A path that no resource serves. */
export function pathNotFound(): StatusError {
  return failure(404, 'NotFound', 'the server could not find the requested resource', {})
}

export function alreadyExists(of: Named, name: string): StatusError {
  return failure(409, 'AlreadyExists', `${qualified(of)} ${quoted(name)} already exists`, detailsOf(of, name))
}

export function conflict(of: Named, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(of)} ${quoted(name)}: ${why}`
  return failure(409, 'Conflict', message, detailsOf(of, name))
}

export function badRequest(message: string): StatusError {
  return failure(400, 'BadRequest', message)
}

export function forbidden(of: Named, name: string, why: string): StatusError {
  const message =
    name === '' ? `${qualified(of)} is forbidden: ${why}` : `${qualified(of)} ${quoted(name)} is forbidden: ${why}`
  return failure(403, 'Forbidden', message, detailsOf(of, name))
}

/** An authorizer's refusal. Its message quotes what was asked, so its answer tells browsers not to guess what it is. */
export class Denial extends StatusError {}

export function denied(message: string, details: StatusDetails): Denial {
  return new Denial(failure(403, 'Forbidden', message, details).status)
}

export function unauthorized(): StatusError {
  return failure(401, 'Unauthorized', 'Unauthorized')
}

export function methodNotAllowed(): StatusError {
  return failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
}

/** 422. `field` is a path like `spec.containers[0].name`; the message lists every cause as kube-apiserver does. */
export function invalid(group: string, kind: string, name: string, causes: readonly FieldError[]): StatusError {
  const texts = [...new Set(causes.map((cause) => `${cause.field}: ${cause.text}`))]
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  const details: StatusDetails = {}
  if (name !== '') details.name = name
  if (group !== '') details.group = group
  if (kind !== '') details.kind = kind
  details.causes = causes.map(({ reason, text, field }) => ({ reason, message: text, field }))
  const qualifiedKind = group === '' ? kind : `${kind}.${group}`
  return failure(422, 'Invalid', `${qualifiedKind} ${quoted(name)} is invalid: ${list}`, details)
}

/** One finding of validation; `text` is "Invalid value: 3: must be …", without the field. */
export type FieldError = { readonly field: string; readonly reason: FieldReason; readonly text: string }

export type FieldReason =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'InternalError'

/** 410 for a list whose version history no longer reaches. */
export function expired(message: string, continueToken?: string): StatusError {
  const error = failure(410, 'Expired', message)
  if (continueToken !== undefined) error.status.metadata.continue = continueToken
  return error
}

/** 504 that client-go recognises by its cause: the asked version lies ahead of ours. */
export function tooOld(asked: number, floor: number): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `too old resource version: ${asked} (${floor})`,
    reason: 'Expired',
    code: 410,
  })
}

export function tooLargeResourceVersion(asked: string, current: string): StatusError {
  return failure(504, 'Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}

export function notAcceptable(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(', ')}`
  return failure(406, 'NotAcceptable', message)
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`
  return failure(415, 'UnsupportedMediaType', message)
}

export function tooManyRequests(message: string, retryAfterSeconds: number): StatusError {
  return failure(429, 'TooManyRequests', message, { retryAfterSeconds })
}

export function internalError(message: string): StatusError {
  return failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] })
}
