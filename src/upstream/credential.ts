/**
 * What a kubeconfig gives: where the API server is, whom to believe there, and who the edge is. Without the first two
 * nothing can be done, and it is refused with a sentence; a client certificate or token that is missing or has expired
 * only means that the API server will not listen, and everything local goes on.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { reasonOf } from '../base/fault.ts'
import { readPlainYaml } from './plainyaml.ts'
import type { Pair, Trust } from './secure.ts'

export type Credential = {
  readonly pair?: Pair
  /** The pair's certificate, as it can be asked. */
  readonly certificate?: X509Certificate
  readonly token?: string
  /** Of a token of a service account: the user it stands for. */
  readonly user?: string
  /** When it ends, by the clock of the wall. */
  readonly endsAtMs?: number
  /** Why there is none, in a sentence. */
  readonly missing?: string
}

/** A credential as people and figures are told of it. */
export type CredentialLife = {
  /** Whose it is: the edge's own, that of callers (by its common name), or what the edge shows its clients. */
  readonly use: 'edge' | 'caller' | 'serving'
  readonly name?: string
  /** Of a certificate that the edge renews by itself: of any other a person is told a week before its end, however short its life is. */
  readonly beganAtMs?: number
  readonly endsAtMs?: number
  /** Why there is none, in a sentence. */
  readonly missing?: string
}

export type Profile = {
  readonly server: string
  readonly trust: Trust
  /** As it stands there; it may hold a credential. */
  readonly proxyUrl?: string
  readonly credential: Credential
  /** Every file that was read or should have been. */
  readonly files: readonly string[]
}

type Section = Readonly<Record<string, unknown>>

/** Rejects with a sentence when the file cannot be used at all. */
export async function readKubeconfig(path: string): Promise<Profile> {
  const content = await parsed(path)
  const file = `the kubeconfig ${path}`
  const contextName = text(content['current-context'])
  if (contextName === undefined) throw new Error(`${file} has no current-context: set one`)
  const context = section(named(content.contexts, contextName)?.context)
  if (context === undefined)
    throw new Error(`${file} has no context "${contextName}", which is its current-context: set another`)
  const clusterName = text(context.cluster) ?? ''
  const cluster = section(named(content.clusters, clusterName)?.cluster)
  if (cluster === undefined)
    throw new Error(`${file} has no cluster "${clusterName}", which its context names: correct it`)
  const userName = text(context.user) ?? ''
  const user = section(named(content.users, userName)?.user)
  refuseUnsupported(file, user ?? {})

  const files = [resolve(path)]
  const at = (value: unknown) => {
    const given = text(value)
    if (given === undefined) return undefined
    const found = resolve(dirname(path), given)
    files.push(found)
    return found
  }
  const trust = await readTrust(file, cluster, at)
  const credential = user === undefined ? {} : await readCredential(user, at)
  const empty = credential.pair === undefined && credential.token === undefined && credential.missing === undefined
  const server = text(cluster.server) ?? ''
  const proxyUrl = text(cluster['proxy-url'])
  return {
    server,
    trust,
    ...(proxyUrl !== undefined && { proxyUrl }),
    credential: empty ? { missing: `${file} holds neither a client certificate nor a token` } : credential,
    files,
  }
}

/** A certificate and its key from two files; what is wrong with them is said in `missing`. */
export async function readPair(certPath: string, keyPath: string): Promise<Credential> {
  const what = `the client certificate ${certPath}`
  let cert = ''
  try {
    cert = await readFile(certPath, 'utf8')
    return checkedPair(cert, await readFile(keyPath, 'utf8'), what)
  } catch (error) {
    const named = cert === '' ? what : `the key ${keyPath} of ${what}`
    return { missing: `${named} cannot be read (${reasonOf(error)}): check its path, and that ake may read it` }
  }
}

/** What keeps this credential from being believed at this time; undefined if nothing is known. */
export function problemOf(
  { missing, endsAtMs, token }: Credential,
  nowMs: number,
  whose = "the edge's",
): string | undefined {
  if (missing !== undefined) return missing
  if (endsAtMs === undefined || endsAtMs > nowMs) return undefined
  const what = token === undefined ? 'client certificate' : 'token'
  return `${whose} ${what} expired on ${new Date(endsAtMs).toISOString()}`
}

/** By the name under which it is known: `edge`, or `certificate/NAME`. */
export function lifeOf(known: string, { certificate, user, endsAtMs, missing }: Credential): CredentialLife {
  const shown = user ?? [certificate?.toLegacyObject().subject.CN].flat().at(-1)
  const name = known === 'edge' ? shown : known.replace(/^certificate\//, '')
  return {
    use: known === 'edge' ? 'edge' : 'caller',
    ...(name !== undefined && { name }),
    ...(endsAtMs !== undefined && { endsAtMs }),
    ...(missing !== undefined && { missing }),
  }
}

export function isSameCredential(one: Credential, other: Credential | undefined): boolean {
  return one.token === other?.token && one.pair?.cert === other?.pair?.cert && one.pair?.key === other?.pair?.key
}

function refuseUnsupported(file: string, user: Section): void {
  for (const name of ['exec', 'auth-provider']) {
    if (section(user[name]) !== undefined) {
      throw new Error(`${file} asks a program for its credential (${name}): give a client certificate or a token file`)
    }
  }
  for (const name of ['as', 'username']) {
    if (text(user[name]) !== undefined) throw new Error(`${file} holds "${name}", which is not supported: remove it`)
  }
}

type At = (value: unknown) => string | undefined

async function readTrust(file: string, cluster: Section, at: At): Promise<Trust> {
  const insecure = text(cluster['insecure-skip-tls-verify']) === 'true'
  const serverName = text(cluster['tls-server-name'])
  const path = at(cluster['certificate-authority'])
  const inline = decoded(cluster['certificate-authority-data'])
  const ca = inline ?? (path === undefined ? undefined : await readText(path))
  if (path !== undefined && ca === undefined)
    throw new Error(`${file} names the authority ${path}, which cannot be read: check its path, and that ake may`)
  if (ca !== undefined && !ca.includes('-----BEGIN '))
    throw new Error(`${file} names an authority that is no PEM: give it a certificate in PEM form`)
  const known = ca !== undefined && !insecure ? { ca } : {}
  return { ...known, insecure, ...(serverName !== undefined && { serverName }) }
}

async function readCredential(user: Section, at: At): Promise<Credential> {
  const certPath = at(user['client-certificate'])
  const keyPath = at(user['client-key'])
  const tokenPath = at(user.tokenFile)
  const cert = decoded(user['client-certificate-data']) ?? (certPath && (await readText(certPath)))
  const key = decoded(user['client-key-data']) ?? (keyPath && (await readText(keyPath)))
  // As client-go has it: the file's token wins over one that is written in.
  const token = (tokenPath && (await readText(tokenPath))?.trim()) || text(user.token)
  const wanted = certPath !== undefined || user['client-certificate-data'] !== undefined
  if (wanted && (!cert || !key) && !token) return { missing: `the edge's client certificate or its key cannot be read` }
  if (cert && key) {
    const pair = checkedPair(cert, key, "the edge's client certificate")
    if (!token) return pair
    if (pair.pair !== undefined) return { pair: pair.pair, ...ofToken(token) }
  }
  if (token) return ofToken(token)
  return tokenPath === undefined ? {} : { missing: `the edge's token file ${tokenPath} cannot be read` }
}

function checkedPair(cert: string, key: string, what: string): Credential {
  try {
    const certificate = new X509Certificate(cert)
    if (!certificate.checkPrivateKey(createPrivateKey(key))) return { missing: `${what} does not belong to its key` }
    return { pair: { cert, key }, certificate, endsAtMs: certificate.validToDate.getTime() }
  } catch {
    return { missing: `${what} or its key is no PEM: give both in PEM form` }
  }
}

/** Tokens of service accounts are JWTs and say when they end; others say nothing. */
export function ofToken(token: string): Credential {
  if (/[^\x21-\x7e]/.test(token)) return { missing: "the edge's token holds characters that no token has" }
  try {
    const claims = section(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()))
    const ends = claims?.exp
    const user = text(claims?.sub)
    return {
      token,
      ...(user?.startsWith('system:serviceaccount:') === true && { user }),
      ...(typeof ends === 'number' && { endsAtMs: ends * 1000 }),
    }
  } catch {
    return { token }
  }
}

async function parsed(path: string): Promise<Section> {
  let source: string
  try {
    source = await readFile(path, 'utf8')
  } catch (error) {
    throw new Error(`the kubeconfig ${path} cannot be read (${reasonOf(error)}): check --kubeconfig`)
  }
  let content: unknown
  try {
    content = readPlainYaml(source) ?? (await readAnyYaml(source))
  } catch {
    // The parser's own words may quote the line, and with it a key.
    throw new Error(`the kubeconfig ${path} is not YAML: correct it, or check --kubeconfig`)
  }
  const found = section(content)
  if (found === undefined) throw new Error(`the kubeconfig ${path} is empty or holds no settings: check --kubeconfig`)
  return found
}

async function readAnyYaml(source: string): Promise<unknown> {
  const { load, FAILSAFE_SCHEMA } = await import('js-yaml')
  return load(source, { schema: FAILSAFE_SCHEMA })
}

function named(list: unknown, name: string): Section | undefined {
  const entries = Array.isArray(list) ? list : []
  return entries.map(section).find((entry) => entry?.name === name)
}

function section(value: unknown): Section | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Section) : undefined
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function decoded(value: unknown): string | undefined {
  const given = text(value)
  return given === undefined ? undefined : Buffer.from(given, 'base64').toString()
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}
