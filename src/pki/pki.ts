/**
 * The certificates of a data folder, in DIR/pki: an authority made at the first start, a serving certificate and the
 * administrator's client certificate, which are renewed at a start when they near their end or the addresses change.
 * A key is written before its certificate, so an interrupted start leaves a pair that does not fit and is made again.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../base/fault.ts'
import { type CertificateRequest, type Issuer, issueCertificate, type KeyPair } from './certificate.ts'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './privatefile.ts'

export type Pki = { readonly ca: string; readonly serving: KeyPair; readonly admin: KeyPair }

const dayMs = 24 * 3600 * 1000
const authorityDays = 3650 // longer than the device is likely to live: a new authority locks out every client
const leafDays = 730 // under the 825 days that some clients accept at most
const renewDays = 30 // a start at least once a month of warning
const skewMs = 3600 * 1000 // a client's clock may be behind ours
// A device without a battery-backed clock may start in 1970: what it makes then must not have expired once it knows the date.
const earliestNowMs = Date.UTC(2026, 0, 1)

const authorityName = { commonName: 'ake-ca' }
const adminName = { commonName: 'ake-admin', organization: 'system:masters' }

/** The pki in `folder`, making or renewing what is needed for serving on `host` at time `now`. */
export async function openPki(parts: { folder: string; host: string; now: number }): Promise<Pki> {
  const { folder, now } = parts
  await makePrivateFolder(folder)
  const authority = await openAuthority(folder, now)
  const end = Date.parse(new X509Certificate(authority.cert).validTo)
  const from = { notBefore: now - skewMs, notAfter: Math.min(endAfter(now, leafDays), end) }
  const hosts = servingHosts(parts.host)
  return {
    ca: authority.cert,
    serving: await openLeaf({
      ...{ folder, now, authority, file: 'serving' },
      request: { ...from, use: 'server', subject: { commonName: 'ake' }, hosts },
      fits: (cert) => hosts.every((host) => isNamed(cert, host)),
    }),
    admin: await openLeaf({
      ...{ folder, now, authority, file: 'admin' },
      request: { ...from, use: 'client', subject: adminName },
      fits: () => true,
    }),
  }
}

/** The names a server on `host` answers to; a wildcard address means every address of this machine. */
export function servingHosts(host: string): string[] {
  const cluster = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local']
  const hosts = ['localhost', '127.0.0.1', '::1', ...cluster, '10.96.0.1'] // the usual address of the kubernetes service
  if (host !== '0.0.0.0' && host !== '::')
    hosts.push(host.replace(/%.*$/, '')) // certificates know no zones
  else {
    if (/^[a-z0-9.-]+$/i.test(hostname())) hosts.push(hostname())
    for (const addresses of Object.values(networkInterfaces())) {
      // Link-local IPv6 addresses need a zone to be reached, and come and go.
      for (const { address, internal } of addresses ?? [])
        if (!internal && !/^fe80:/i.test(address)) hosts.push(address)
    }
  }
  return [...new Set(hosts)]
}

async function openAuthority(folder: string, now: number): Promise<KeyPair> {
  const known = await readPair(folder, 'ca')
  // No certificate: a first start, or one that was interrupted before any client could trust the key.
  if (known.cert === undefined) {
    const dates = { notBefore: now - skewMs, notAfter: endAfter(now, authorityDays) }
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
    const lasts = Date.parse(parsed.validTo) - now > renewDays * dayMs
    const trusted = parsed.verify(new X509Certificate(authority.cert).publicKey)
    if (lasts && trusted && fits(parsed)) return { cert, key }
  }
  const issuer: Issuer = { name: authorityName, key: createPrivateKey(authority.key) }
  return writePair(folder, file, issueCertificate(request, issuer))
}

function endAfter(now: number, days: number): number {
  return Math.max(now, earliestNowMs) + days * dayMs
}

function isNamed(cert: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? cert.checkHost(host, { subject: 'never' }) : cert.checkIP(host)) !== undefined
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
