/**
 * The certificates of a data folder, in DIR/pki: an authority made at the first start, a serving certificate and the
 * administrator's client certificate, which are renewed when they near their end or the names to answer to change.
 * A key is written before its certificate, so an interrupted start leaves a pair that does not fit and is made again.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../base/fault.ts'
import { type CertificateRequest, type Issuer, issueCertificate, type KeyPair } from './certificate.ts'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './privatefile.ts'

export type Pki = { readonly ca: string; readonly serving: KeyPair; readonly admin: KeyPair }

const dayMs = 24 * 3600 * 1000
const authorityDays = 3650 // longer than the device is likely to live: a new authority locks out every client
const leafDays = 730 // under the 825 days that some clients accept at most
const renewDays = 30 // warned of for that long where the disk refuses a new one
// A device without a battery-backed clock may start in 1970: what it made before must count then, and what it makes then must
// not have expired once it knows the date. A client that trusts our authority trusts this machine alone: its past has nothing to hide.
const notBefore = 0
const earliestNowMs = Date.UTC(2026, 0, 1)

const authorityName = { commonName: 'ake-ca' }
const adminName = { commonName: 'ake-admin', organization: 'system:masters' }

/** The pki in `folder`, making or renewing what is needed for serving under the names and addresses `hosts` at time `now`. */
export async function openPki(parts: { folder: string; hosts: readonly string[]; now: number }): Promise<Pki> {
  const { folder, hosts, now } = parts
  await makePrivateFolder(folder)
  const authority = await openAuthority(folder, now)
  const end = Date.parse(new X509Certificate(authority.cert).validTo)
  const from = { notBefore, notAfter: Math.min(endAfter(now, leafDays), end) }
  return {
    ca: authority.cert,
    serving: await openLeaf({
      ...{ folder, now, authority, file: 'serving' },
      request: { ...from, use: 'server', subject: { commonName: 'ake' }, hosts },
      fits: (cert) => answersTo(cert, hosts),
    }),
    admin: await openLeaf({
      ...{ folder, now, authority, file: 'admin' },
      request: { ...from, use: 'client', subject: adminName },
      fits: () => true,
    }),
  }
}

/** Whether a serving certificate is good at `now`, for a while, and names all of them. */
export function isServing(cert: X509Certificate, hosts: readonly string[], now: number): boolean {
  return lasts(cert, now) && answersTo(cert, hosts)
}

/** `listen`: where it listens; a wildcard means every address of this machine. `names`: what else it is called or reached by. */
export function servingHosts(listen: readonly string[], names: readonly string[] = []): string[] {
  const cluster = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local']
  const hosts = ['localhost', '127.0.0.1', '::1', ...cluster, '10.96.0.1'] // the usual address of the kubernetes service
  for (const host of [...listen, ...names]) {
    if (!isWildcard(host)) hosts.push(host.replace(/%.*$/, '')) // certificates know no zones
  }
  if (listen.some(isWildcard)) {
    if (/^[a-z0-9.-]+$/i.test(hostname())) hosts.push(hostname())
    hosts.push(...machineAddresses())
  }
  return [...new Set(hosts)]
}

/** Those by which other machines, and pods, reach this one. Link-local IPv6 needs a zone to be reached, and comes and goes. */
export function machineAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.filter(({ address, internal }) => !internal && !/^fe80:/i.test(address)).map(({ address }) => address)
}

export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

async function openAuthority(folder: string, now: number): Promise<KeyPair> {
  const known = await readPair(folder, 'ca')
  // No certificate: a first start, or one that was interrupted before any client could trust the key.
  if (known.cert === undefined) {
    const dates = { notBefore, notAfter: endAfter(now, authorityDays) }
    return writePair(folder, 'ca', issueCertificate({ ...dates, use: 'authority', subject: authorityName }))
  }
  const remedy = `remove ${folder} to start with a new authority (clients then need the new admin.kubeconfig)`
  if (known.key === undefined || !isPair(known as KeyPair)) {
    throw new UsageError(`${join(folder, 'ca.key')} does not belong to ca.crt: restore it, or ${remedy}`)
  }
  const end = Date.parse(new X509Certificate(known.cert).validTo)
  if (end < now) throw new UsageError(`the authority in ${folder} expired on ${new Date(end).toISOString()}: ${remedy}`)
  return { cert: known.cert, key: known.key }
}

type Leaf = {
  folder: string
  file: string
  now: number
  authority: KeyPair
  request: CertificateRequest
  fits: (cert: X509Certificate) => boolean
}

async function openLeaf({ folder, file, now, authority, request, fits }: Leaf): Promise<KeyPair> {
  const { cert, key } = await readPair(folder, file)
  if (cert !== undefined && key !== undefined && isPair({ cert, key })) {
    const parsed = new X509Certificate(cert)
    const trusted = parsed.verify(new X509Certificate(authority.cert).publicKey)
    if (lasts(parsed, now) && trusted && fits(parsed)) return { cert, key }
  }
  const issuer: Issuer = { name: authorityName, key: createPrivateKey(authority.key) }
  return writePair(folder, file, issueCertificate(request, issuer))
}

function endAfter(now: number, days: number): number {
  return Math.max(now, earliestNowMs) + days * dayMs
}

function lasts(cert: X509Certificate, now: number): boolean {
  return Date.parse(cert.validFrom) <= now && Date.parse(cert.validTo) - now > renewDays * dayMs
}

function answersTo(cert: X509Certificate, hosts: readonly string[]): boolean {
  return hosts.every((host) => isNamed(cert, host))
}

/** No name has a colon. Node's own way to tell an IPv6 address costs a start ten milliseconds, for one expression. */
function isNamed(cert: X509Certificate, host: string): boolean {
  const isAddress = isIPv4(host) || host.includes(':')
  return (isAddress ? cert.checkIP(host) : cert.checkHost(host, { subject: 'never' })) !== undefined
}

function isPair({ cert, key }: KeyPair): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false // one of them is no PEM
  }
}

async function readPair(folder: string, file: string): Promise<Partial<KeyPair>> {
  const cert = await readPrivateFile(join(folder, `${file}.crt`))
  const key = await readPrivateFile(join(folder, `${file}.key`))
  return { ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) }
}

async function writePair(folder: string, file: string, pair: KeyPair): Promise<KeyPair> {
  await writePrivateFile(join(folder, `${file}.key`), pair.key)
  await writePrivateFile(join(folder, `${file}.crt`), pair.cert)
  return pair
}
