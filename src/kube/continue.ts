/**
 * Continue tokens: where a paged list goes on and at which version. The form is kube-apiserver's, so that a client may carry
 * one between edge and cloud; `t`, the time of issue, is ours and ignored by others.
 */
import { parseJson } from './json/json.ts'
import { badRequest } from './status.ts'

/** How long a token is good for: kube-apiserver's tokens die with etcd's compaction, every 5 minutes. */
export const CONTINUE_TTL_SECONDS = 300

const FORM = 'meta.k8s.io/v1'

export type ContinueToken = {
  /** The first storage key of the next page, prefix included. */
  readonly start: string
  /** The version all pages show; undefined means "go on at the latest, even if that is inconsistent" (-1 on the wire). */
  readonly version: number | undefined
  /** Seconds since the epoch; undefined in tokens that others made. */
  readonly issuedSeconds: number | undefined
}

/** `lastKey` is the last storage key of this page; the prefix (`namespace/`) is left out of the token. */
export function encodeContinue(
  lastKey: string,
  version: number | undefined,
  issuedSeconds: number,
  keyPrefix = '',
): string {
  const start = `${lastKey.slice(keyPrefix.length)}\0`
  const token = { v: FORM, rv: version ?? -1, start, t: issuedSeconds }
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

export function decodeContinue(token: string, keyPrefix = ''): ContinueToken {
  const fields = parse(base64(token))
  const v = text(fields, 'v')
  const rv = integer(fields)
  const given = text(fields, 'start')
  if (v !== FORM) throw refused(`: server does not recognize this encoded version ${v}`)
  if (rv === 0) throw refused(`: incorrect encoded start resourceVersion (version ${FORM})`)
  if (given === '') throw refused(`: encoded start key empty (version ${FORM})`)
  const start = given.startsWith('/') ? given.slice(1) : given
  if (!clean(start)) throw refused(`: ${given}`)
  const issued = fields.t
  return {
    start: keyPrefix + start,
    version: rv < 0 ? undefined : rv,
    issuedSeconds: typeof issued === 'number' && Number.isSafeInteger(issued) ? issued : undefined,
  }
}

function refused(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid${why}`)
}

/** The start may not lead out of the list: no empty, `.` or `..` segment. */
function clean(start: string): boolean {
  return start.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..')
}

function base64(token: string): string {
  const letters = token.replace(/[\r\n]/g, '')
  const alien = letters.search(/[^A-Za-z0-9_-]/)
  if (alien >= 0) throw refused(`: illegal base64 data at input byte ${alien}`)
  if (letters.length % 4 === 1) throw refused(`: illegal base64 data at input byte ${letters.length - 1}`)
  return Buffer.from(letters, 'base64url').toString('utf8')
}

function parse(json: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw refused(`: ${syntaxFault(json)}`)
  }
  if (value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw refused(`: json: cannot unmarshal ${jsonKind(value)} into Go value of type storage.continueToken`)
  }
  return value as Record<string, unknown>
}

/** What Go's reader complains about. */
function syntaxFault(json: string): string {
  try {
    parseJson(json)
    return 'invalid JSON'
  } catch (error) {
    return (error as Error).message
  }
}

function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function text(fields: Record<string, unknown>, name: string): string {
  const value = fields[name]
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  throw refused(`: json: cannot unmarshal ${jsonKind(value)} into Go struct field continueToken.${name} of type string`)
}

function integer(fields: Record<string, unknown>): number {
  const value = fields.rv
  if (value === undefined || value === null) return 0
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  const shown = typeof value === 'number' ? `number ${value}` : jsonKind(value)
  throw refused(`: json: cannot unmarshal ${shown} into Go struct field continueToken.rv of type int64`)
}
