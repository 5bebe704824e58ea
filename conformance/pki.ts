/**
 * The keys and certificates a bare kube-apiserver needs, made with openssl so that the oracle owes nothing to our own
 * certificate code.
 */

import { execFile } from 'node:child_process'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Longer than any run, a shared oracle included. */
const validDays = '365'

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
}

/** A client certificate of the CA that `makePki` made in the same folder. */
export function makeClient(dir: string, { file, user, groups }: ClientName): Promise<void> {
  const escaped = (name: string) => name.replace(/[/+\\]/g, '\\$&')
  const subject = [...groups.map((group) => `/O=${escaped(group)}`), `/CN=${escaped(user)}`].join('')
  return make(dir, { file, subject, extensions: client })
}

type Certificate = {
  readonly file: string
  readonly subject: string
  readonly extensions: readonly string[]
  readonly by?: readonly string[]
}

async function make(dir: string, { file, subject, extensions, by = byCa }: Certificate): Promise<void> {
  const args = [
    ...['req', '-x509', '-config', 'openssl.cnf', '-nodes', '-days', validDays, ...by],
    ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-keyout', `${file}.key`, '-out', `${file}.crt`],
    ...['-subj', subject, ...extensions.flatMap((extension) => ['-addext', extension])],
  ]
  await run('openssl', args, { cwd: dir })
  await chmod(join(dir, `${file}.key`), 0o600)
}
