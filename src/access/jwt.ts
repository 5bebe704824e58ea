/**
 * The claims of a JSON Web Token, read without verifying them (`authenticate` does). What is read here may shorten a
 * token's life or be compared with what the API server said, never grant anything. Never throws, whatever it is given.
 */

import { tokenCharsMax } from './authenticate/signedtoken.ts'

type Named = { readonly name: string; readonly uid: string }

export type Account = Named & {
  readonly namespace: string
  /** What the token is bound to, and the node of that pod. */
  readonly pod?: Named
  readonly node?: Named
}

export type Claims = {
  readonly expiresMs: number | undefined
  readonly issuedMs: number | undefined
  readonly audiences: readonly string[]
  /** Of a service account's token. */
  readonly account: Account | undefined
}

export function readClaims(token: string): Claims | undefined {
  if (token.length > tokenCharsMax) return undefined
  const first = token.indexOf('.')
  const second = token.indexOf('.', first + 1)
  if (first <= 0 || second < 0 || token.indexOf('.', second + 1) >= 0) return undefined
  const claims = parsed(token.slice(first + 1, second))
  if (claims === undefined) return undefined
  return {
    expiresMs: moment(claims.exp),
    issuedMs: moment(claims.iat),
    audiences: audiences(claims.aud),
    account: accountOf(record(claims['kubernetes.io'])),
  }
}

function accountOf(own: Tree | undefined): Account | undefined {
  const namespace = text(own?.namespace)
  const account = named(own?.serviceaccount)
  if (namespace === undefined || account === undefined) return undefined
  const [pod, node] = [named(own?.pod), named(own?.node)]
  return { namespace, ...account, ...(pod === undefined ? {} : { pod }), ...(node === undefined ? {} : { node }) }
}

function named(value: unknown): Named | undefined {
  const found = record(value)
  const [name, uid] = [text(found?.name), text(found?.uid)]
  return name === undefined || uid === undefined ? undefined : { name, uid }
}

type Tree = Readonly<Record<string, unknown>>

function parsed(segment: string): Tree | undefined {
  try {
    return record(JSON.parse(Buffer.from(segment, 'base64url').toString('utf8')))
  } catch {
    return undefined
  }
}

function record(value: unknown): Tree | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Tree) : undefined
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Seconds since 1970, possibly with a fraction; what no date can be is none. */
function moment(value: unknown): number | undefined {
  if (typeof value !== 'number' || !(value >= 0) || value > 8.64e12) return undefined
  return Math.floor(value * 1000)
}

function audiences(value: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.filter((item): item is string => typeof item === 'string')
}
