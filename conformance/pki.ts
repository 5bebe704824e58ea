/**
 * The keys and certificates a bare kube-apiserver needs, made with openssl so that the oracle owes nothing to our own
 * certificate code.
 */

import { execFile } from 'node:child_process'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Longer than any run, a shared oracle included. */
const validDays = 365

const byCa = ['-CA', 'ca.crt', '-CAkey', 'ca.key']
const client = ['keyUsage=critical,digitalSignature', 'extendedKeyUsage=clientAuth']

/** Writes ca, apiserver, admin, kubelet-client (.crt and .key) and accounts.key, the signer of service account tokens. */
export async function makePki(dir: string): Promise<void> {
  // The system's own configuration would add extensions of a CA to every certificate.
  await writeFile(join(dir, 'openssl.cnf'), '[req]\ndistinguished_name = dn\n[dn]\n')
  const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'].map((name) => `DNS:${name}`)
  const server = [
    'keyUsage=critical,digitalSignature',
    'extendedKeyUsage=serverAuth',
    `subjectAltName=${names.join(',')},IP:127.0.0.1,IP:10.96.0.1`,
  ]
  const authority = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign']
  await make(dir, { file: 'ca', subject: '/CN=oracle-ca', extensions: authority, by: [] })
  await make(dir, { file: 'apiserver', subject: '/CN=kube-apiserver', extensions: server })
  await makeClient(dir, { file: 'admin', user: 'admin', groups: ['system:masters'] })
  await makeClient(dir, { file: 'kubelet-client', user: 'kube-apiserver-kubelet-client', groups: ['system:masters'] })
  const bits = ['-pkeyopt', 'rsa_keygen_bits:2048']
  await run('openssl', ['genpkey', '-algorithm', 'RSA', ...bits, '-out', 'accounts.key'], { cwd: dir })
  await chmod(join(dir, 'accounts.key'), 0o600)
}

export type ClientName = {
  /** Without its ending: .crt and .key are written. */
  readonly file: string
  readonly user: string
  readonly groups: readonly string[]
  /** As Kubernetes reads it of a subject (1.3.6.1.4.1.57683.2). */
  readonly uid?: string
  readonly days?: number
}

/** A client certificate of the CA that `makePki` made in the same folder. */
export function makeClient(dir: string, { file, user, groups, uid, days = validDays }: ClientName): Promise<void> {
  const subject = `${subjectOf(user, groups)}${uid === undefined ? '' : `/1.3.6.1.4.1.57683.2=${uid}`}`
  return make(dir, { file, subject, extensions: client, days })
}

function subjectOf(user: string, groups: readonly string[]): string {
  const escaped = (name: string) => name.replace(/[/+\\]/g, '\\$&')
  return [...groups.map((group) => `/O=${escaped(group)}`), `/CN=${escaped(user)}`].join('')
}

type Brief = Omit<ClientName, 'file' | 'days' | 'uid'> & { readonly seconds: number }

/** A client certificate of the CA in `pki` with so many seconds to live: `openssl req` knows only days. */
export async function makeBriefClient(
  pki: string,
  dir: string,
  { user, groups, seconds }: Brief,
): Promise<{ cert: string; key: string }> {
  const file = (name: string) => join(dir, name)
  const config = [
    '[ca]\ndefault_ca = brief\n[brief]',
    `database = ${file('brief.index')}\nserial = ${file('brief.serial')}\nnew_certs_dir = ${dir}`,
    'default_md = sha256\npolicy = any\nunique_subject = no\nx509_extensions = client',
    '[any]\norganizationName = supplied\ncommonName = supplied',
    '[client]\nkeyUsage = critical,digitalSignature\nextendedKeyUsage = clientAuth',
    '[req]\ndistinguished_name = dn\n[dn]\n',
  ]
  await writeFile(file('brief.cnf'), config.join('\n'))
  await writeFile(file('brief.index'), '')
  await writeFile(file('brief.serial'), '1000\n')
  const end = new Date(Date.now() + seconds * 1_000)
  const time = `${end.toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
  const settings = ['-config', file('brief.cnf')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await run('openssl', [
    ...['req', '-new', ...settings, ...curve, '-subj', subjectOf(user, groups)],
    ...['-keyout', file('brief.key'), '-out', file('brief.csr')],
  ])
  await run('openssl', [
    ...['ca', '-batch', '-notext', ...settings, '-cert', join(pki, 'ca.crt'), '-keyfile', join(pki, 'ca.key')],
    ...['-in', file('brief.csr'), '-out', file('brief.crt'), '-enddate', time],
  ])
  const [cert, key] = await Promise.all([readFile(file('brief.crt'), 'utf8'), readFile(file('brief.key'), 'utf8')])
  return { cert, key }
}

type Certificate = {
  readonly file: string
  readonly subject: string
  readonly extensions: readonly string[]
  readonly by?: readonly string[]
  readonly days?: number
}

async function make(dir: string, certificate: Certificate): Promise<void> {
  const { file, subject, extensions, by = byCa, days = validDays } = certificate
  const args = [
    ...['req', '-x509', '-utf8', '-config', 'openssl.cnf', '-nodes', '-days', String(days), ...by],
    ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-keyout', `${file}.key`, '-out', `${file}.crt`],
    ...['-subj', subject, ...extensions.flatMap((extension) => ['-addext', extension])],
  ]
  await run('openssl', args, { cwd: dir })
  await chmod(join(dir, `${file}.key`), 0o600)
}
