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

/** Writes ca, apiserver, admin, kubelet-client (.crt and .key) and accounts.key, the signer of service account tokens. */
export async function makePki(dir: string): Promise<void> {
  const openssl = (...args: string[]) => run('openssl', args, { cwd: dir })
  // The system's own configuration would add extensions of a CA to every certificate.
  await writeFile(join(dir, 'openssl.cnf'), '[req]\ndistinguished_name = dn\n[dn]\n')
  const make = (name: string, subject: string, extensions: readonly string[], by: readonly string[] = []) =>
    openssl(
      ...['req', '-x509', '-config', 'openssl.cnf', '-nodes', '-days', validDays, ...by],
      ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-keyout', `${name}.key`, '-out', `${name}.crt`],
      ...['-subj', subject, ...extensions.flatMap((extension) => ['-addext', extension])],
    )
  const byCa = ['-CA', 'ca.crt', '-CAkey', 'ca.key']
  const client = ['keyUsage=critical,digitalSignature', 'extendedKeyUsage=clientAuth']
  const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'].map((name) => `DNS:${name}`)
  const server = [
    'keyUsage=critical,digitalSignature',
    'extendedKeyUsage=serverAuth',
    `subjectAltName=${names.join(',')},IP:127.0.0.1,IP:10.96.0.1`,
  ]
  await make('ca', '/CN=oracle-ca', ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'])
  await make('apiserver', '/CN=kube-apiserver', server, byCa)
  await make('admin', '/O=system:masters/CN=admin', client, byCa)
  await make('kubelet-client', '/O=system:masters/CN=kube-apiserver-kubelet-client', client, byCa)
  await openssl('genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', 'accounts.key')
  for (const name of ['ca', 'apiserver', 'admin', 'kubelet-client', 'accounts']) {
    await chmod(join(dir, `${name}.key`), 0o600)
  }
}
