/**
 * TokenRequest: a token for a service account, for some audiences and a time, bound to the account and, if asked, to a pod, a
 * node or a secret: it ends with them. What is claimed is kube-apiserver's; which key signs it is for the composition to say.
 */
import { quoted } from '../kube/json/gotext.ts'
import { fromPlain, isObject, type Json, type JsonObject, parseJson, printJson, text } from '../kube/json/json.ts'
import { objectKey } from '../kube/resource.ts'
import { invalidField } from '../kube/schema/errors.ts'
import { badRequest, conflict, type FieldError, invalid, notFound } from '../kube/status.ts'
import type { KindName } from './components.ts'
import { decodeKind, ensureNamespace } from './decode.ts'
import { core, type Engine, pods, secrets } from './engine.ts'
import { metaOf, timestamp } from './meta.ts'
import { readOptions } from './options.ts'
import { recordNew } from './ownership.ts'
import { carrying } from './warnings.ts'
import type { StoredObject, WriteRequest, WriteResult } from './write.ts'

/** What signs tokens, under the name of a server. */
export interface TokenIssuer {
  /** Its name; also the audience of a token that is for no other. */
  readonly issuer: string
  sign(claims: object): string
}

const kind: KindName = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }
const accounts = core('serviceaccounts')
const nodes = core('nodes')

const usualSeconds = 3_600
const secondsMin = 600
const secondsMax = 2 ** 32
/** What a kubelet asks for: pods of old do not read their token again, so it counts for a year, and clients are warned. */
const podSeconds = 3_607
const extendedSeconds = 365 * 24 * 3_600

export async function requestToken(engine: Engine, issuer: TokenIssuer, request: WriteRequest): Promise<WriteResult> {
  const { fieldValidation, manager } = readOptions('CreateOptions', request)
  const { tree, warnings } = await decodeKind(request, kind, fieldValidation)
  return carrying(warnings, async () => {
    const meta = metaOf(tree)
    ensureNamespace(request, meta)
    const spec = specOf(tree)
    if ((spec.get('expirationSeconds') ?? undefined) === undefined) spec.set('expirationSeconds', usualSeconds)
    recordNew(engine, kind, { manager, subresource: 'token' }, tree)
    const account = accountOf(engine, request, meta)
    if (textsOf(spec.get('audiences')).length === 0) spec.set('audiences', [issuer.issuer])
    const seconds = Number(printJson(spec.get('expirationSeconds') ?? null))
    const faults = expirationFaults(seconds)
    if (faults.length > 0) throw invalid(kind.group, kind.kind, '', faults)
    const bound = boundTo(engine, request, spec.get('boundObjectRef') ?? null)
    const now = Math.floor(engine.clock.now() / 1000)
    const token = issuer.sign(claimsOf({ engine, issuer, account, bound, spec, seconds, now }))
    const status = { token, expirationTimestamp: timestamp((now + seconds) * 1000) }
    return { code: 201, review: answered(tree, account, status, timestamp(now * 1000)), warnings }
  })
}

function specOf(tree: JsonObject): JsonObject {
  const spec = tree.get('spec')
  if (isObject(spec)) return spec
  const made: JsonObject = new Map()
  tree.set('spec', made)
  return made
}

function accountOf(engine: Engine, { name, namespace }: WriteRequest, meta: JsonObject): StoredObject {
  const [named, uid] = [text(meta, 'name'), text(meta, 'uid')]
  if (named !== '' && named !== name) {
    const fault = invalidField('metadata.name', named, 'must match the service account name if specified')
    throw invalid(kind.group, kind.kind, name, [fault])
  }
  const account = engine.objectsOf(accounts).get(objectKey(namespace, name))
  if (account === undefined) throw notFound(accounts, name)
  if (uid === '' || uid === account.uid) return account
  const why = `the UID in the token request (${uid}) does not match the UID of the service account (${account.uid})`
  throw conflict({ group: kind.group, resource: kind.kind }, name, why)
}

function expirationFaults(seconds: number): FieldError[] {
  const at = 'spec.expirationSeconds'
  if (seconds < secondsMin) return [invalidField(at, seconds, 'may not specify a duration less than 10 minutes')]
  if (seconds > secondsMax) return [invalidField(at, seconds, 'may not specify a duration larger than 2^32 seconds')]
  return []
}

type Named = { readonly name: string; readonly uid?: string }
type Bound = { readonly pod?: Named; readonly node?: Named; readonly secret?: Named }

/** What the token is bound to, if that is there and is meant. */
function boundTo(engine: Engine, { name: account, namespace }: WriteRequest, ref: Json): Bound {
  if (!isObject(ref)) return {}
  const [refKind, name, uid] = [text(ref, 'kind'), text(ref, 'name'), text(ref, 'uid')]
  const [group, version] = groupVersion(text(ref, 'apiVersion'))
  const held = (resource: typeof pods, within: string) => {
    const found = engine.objectsOf(resource).get(objectKey(within, name))
    if (found === undefined) throw notFound(resource, name)
    return found
  }
  const meant = (found: StoredObject): Named => {
    if (uid === '' || uid === found.uid) return { name, uid: found.uid }
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict({ group, resource: refKind }, name, why)
  }
  if (group === '' && refKind === 'Pod') {
    const pod = held(pods, namespace)
    const spec = parseJson(pod.bytes)
    // Where no admission says it, a pod that names no account is the default one's.
    if ((text(spec, 'spec', 'serviceAccountName') || 'default') !== account) {
      throw badRequest(
        `cannot bind token for serviceaccount ${quoted(account)} to pod running with different serviceaccount name.`,
      )
    }
    const on = text(spec, 'spec', 'nodeName')
    const node = on === '' ? undefined : engine.objectsOf(nodes).get(on)
    return { ...(on === '' ? {} : { node: { name: on, ...(node && { uid: node.uid }) } }), pod: meant(pod) }
  }
  if (group === '' && refKind === 'Node') return { node: meant(held(nodes, '')) }
  if (group === '' && refKind === 'Secret') return { secret: meant(held(secrets, namespace)) }
  throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${refKind}`)
}

/** What is none, as Go reads it, is of no group and no version. */
function groupVersion(apiVersion: string): [group: string, version: string] {
  const [first = '', second, ...more] = apiVersion.split('/')
  if (more.length > 0) return ['', '']
  return second === undefined ? ['', first] : [first, second]
}

type Granted = {
  readonly engine: Engine
  readonly issuer: TokenIssuer
  readonly account: StoredObject
  readonly bound: Bound
  readonly spec: JsonObject
  readonly seconds: number
  readonly now: number
}

/** In the order in which Go prints maps. */
function claimsOf({ engine, issuer, account, bound, spec, seconds, now }: Granted): object {
  const { namespace, name, uid } = account
  const aud = textsOf(spec.get('audiences'))
  const isExtended = bound.pod !== undefined && seconds === podSeconds && aud.every((one) => one === issuer.issuer)
  return {
    aud,
    exp: now + (isExtended ? extendedSeconds : seconds),
    iat: now,
    iss: issuer.issuer,
    jti: engine.newUid(),
    'kubernetes.io': {
      namespace,
      node: bound.node,
      pod: bound.pod,
      secret: bound.secret,
      serviceaccount: { name, uid },
      warnafter: isExtended ? now + seconds : undefined,
    },
    nbf: now,
    sub: `system:serviceaccount:${namespace}:${name}`,
  }
}

/** As kube-apiserver prints it. */
function answered(tree: JsonObject, account: StoredObject, status: object, now: string): JsonObject {
  const { name, namespace, uid } = account
  const meta = metaOf(tree)
  const metadata: JsonObject = new Map<string, Json>([
    ['name', name],
    ['namespace', namespace],
    ['uid', uid],
    ['creationTimestamp', now],
  ])
  for (const [key, value] of meta) if (!metadata.has(key)) metadata.set(key, value)
  const spec = specOf(tree)
  const at = (key: string): [string, Json] => [key, spec.get(key) ?? null]
  return new Map<string, Json>([
    ['kind', kind.kind],
    ['apiVersion', 'authentication.k8s.io/v1'],
    ['metadata', metadata],
    ['spec', new Map([at('audiences'), at('expirationSeconds'), at('boundObjectRef')])],
    ['status', fromPlain(status)],
  ])
}

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
