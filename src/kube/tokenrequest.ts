/**
 * A TokenRequest: what a client asks a service account's token for, and what was granted. Read from JSON here (from
 * protobuf in protobuf/peek.ts) and printed as an API server prints it, so that a token can be granted again by the edge.
 */
import { field, fromPlain, isObject, type Json, JsonError, parseJson, printJson, text } from './json/json.ts'

export type TokenRequestFacts = {
  /** Of the service account, in answers; '' in requests. */
  readonly uid: string
  /** When it was answered; undefined in requests. All times are in seconds since 1970, which is as fine as they are. */
  readonly createdSeconds: number | undefined
  /** In the order asked; none means those of the API server. */
  readonly audiences: readonly string[]
  readonly expirationSeconds: number | undefined
  /** The pod, secret or node with which the token ends. */
  readonly boundTo:
    | { readonly kind: string; readonly apiVersion: string; readonly name: string; readonly uid: string }
    | undefined
  /** '' until granted. */
  readonly token: string
  readonly expiresSeconds: number | undefined
}

/** The bytes are no TokenRequest. */
export class TokenRequestFault extends Error {}

export const noTokenRequest: TokenRequestFacts = {
  uid: '',
  createdSeconds: undefined,
  audiences: [],
  expirationSeconds: undefined,
  boundTo: undefined,
  token: '',
  expiresSeconds: undefined,
}

export function readTokenRequestJson(bytes: Buffer): TokenRequestFacts {
  const request = parsed(bytes)
  const spec = field(request, 'spec')
  const bound = field(spec, 'boundObjectRef')
  const audiences = field(spec, 'audiences') ?? []
  const expiration = field(spec, 'expirationSeconds') ?? undefined
  if (!isTexts(audiences) || (expiration !== undefined && !isSeconds(expiration)))
    throw new TokenRequestFault('its members are not what they should be')
  return {
    uid: text(request, 'metadata', 'uid'),
    createdSeconds: seconds(text(request, 'metadata', 'creationTimestamp')),
    audiences,
    expirationSeconds: expiration,
    boundTo: isObject(bound)
      ? {
          kind: text(bound, 'kind'),
          apiVersion: text(bound, 'apiVersion'),
          name: text(bound, 'name'),
          uid: text(bound, 'uid'),
        }
      : undefined,
    token: text(request, 'status', 'token'),
    expiresSeconds: seconds(text(request, 'status', 'expirationTimestamp')),
  }
}

/** As kube-apiserver answers, without the managedFields that it makes up for this object which is kept nowhere. */
export function printTokenRequest(
  facts: TokenRequestFacts,
  account: { readonly namespace: string; readonly name: string },
): Buffer {
  const { boundTo } = facts
  const answer = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: {
      name: account.name,
      namespace: account.namespace,
      uid: facts.uid || undefined,
      creationTimestamp: time(facts.createdSeconds),
    },
    spec: {
      audiences: facts.audiences.length === 0 ? null : facts.audiences,
      expirationSeconds: facts.expirationSeconds ?? null,
      boundObjectRef:
        boundTo === undefined
          ? null
          : {
              kind: boundTo.kind || undefined,
              apiVersion: boundTo.apiVersion || undefined,
              name: boundTo.name || undefined,
              uid: boundTo.uid || undefined,
            },
    },
    status: { token: facts.token, expirationTimestamp: time(facts.expiresSeconds) ?? null },
  }
  return Buffer.from(printJson(fromPlain(answer)))
}

function parsed(bytes: Buffer): Json {
  let request: Json
  try {
    request = parseJson(bytes)
  } catch (error) {
    throw error instanceof JsonError ? new TokenRequestFault('it is not JSON') : error
  }
  // The path says what it is: a request need not.
  if (isObject(request) && ['', 'TokenRequest'].includes(text(request, 'kind'))) return request
  throw new TokenRequestFault('it is of another kind')
}

function isTexts(value: Json): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function isSeconds(value: Json): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value)
}

function seconds(timestamp: string): number | undefined {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(timestamp)
    ? Date.parse(timestamp)
    : Number.NaN
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000)
}

function time(secondsSince: number | undefined): string | undefined {
  return secondsSince === undefined ? undefined : `${new Date(secondsSince * 1000).toISOString().slice(0, 19)}Z`
}
