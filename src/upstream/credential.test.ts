import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { lifeOf, problemOf, readKubeconfig } from './credential.ts'
import { authorityCert, issue } from './fakeserver.test-support.ts'

const pair = issue({ use: 'client', name: 'edge' })

function folder(context: TestContext, files: Record<string, string>) {
  const at = mkdtempSync(join(tmpdir(), 'ake-kubeconfig-'))
  context.after(() => rmSync(at, { recursive: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at, name), text)
  return join(at, 'config')
}

const config = (cluster: string, user: string) => `
current-context: c
contexts: [{ name: c, context: { cluster: k, user: u } }]
clusters: [{ name: k, cluster: { server: 'https://k:6443', ${cluster} } }]
users: [{ name: u, user: { ${user} } }]
`

test('files are found beside the kubeconfig, and all of them are followed', async (context) => {
  const text = config(
    "certificate-authority: ca, tls-server-name: kube, proxy-url: 'http://p'",
    'client-certificate: c, client-key: k, tokenFile: t, token: written',
  )
  const path = folder(context, { config: text, ca: authorityCert, c: pair.cert, k: pair.key, t: 'filed\n' })
  const { server, trust, proxyUrl, credential, files } = await readKubeconfig(path)
  assert.equal(server, 'https://k:6443')
  assert.deepEqual(trust, { ca: authorityCert, insecure: false, serverName: 'kube' })
  assert.equal(proxyUrl, 'http://p')
  assert.deepEqual(credential.pair, pair)
  assert.equal(credential.token, 'filed')
  assert.equal(files.length, 5)
})

test('what cannot be used is refused with a sentence that names it and quotes nothing', async (context) => {
  const cases: [text: string, reason: RegExp][] = [
    ['', /empty|not YAML/],
    ['users: [{ name: "very-secret', /is not YAML/],
    ['{}', /no current-context/],
    ['current-context: x', /no context "x"/],
    [config('', 'exec: { command: aws }'), /asks a program for its credential \(exec\)/],
    [config('', 'auth-provider: { name: oidc }'), /auth-provider/],
    [config('certificate-authority: gone', ''), /cannot be read/],
    [config('certificate-authority-data: eA==', ''), /no PEM/],
  ]
  for (const [text, reason] of cases) {
    const error = await readKubeconfig(folder(context, { config: text })).then(
      () => assert.fail(`${reason} was accepted`),
      (refusal: Error) => refusal,
    )
    assert.match(error.message, reason)
    assert.match(error.message, /[^:]: [a-z][^:]+$/, 'with what to do')
    assert.doesNotMatch(error.message, /very-secret/)
  }
  const unread = /^the kubeconfig \/nowhere\/config cannot be read \(no such file or directory\): check --kubeconfig$/
  await assert.rejects(readKubeconfig('/nowhere/config'), ({ message }: Error) => unread.test(message))
})

test('certificate and key may stand in one file, in either order, as a kubelet keeps them', async (context) => {
  for (const pem of [`${pair.cert}${pair.key}`, `${pair.key}${pair.cert}`]) {
    const path = folder(context, { config: config('', 'client-certificate: pem, client-key: pem'), pem })
    const { credential } = await readKubeconfig(path)
    assert.equal(problemOf(credential, Date.UTC(2026, 0, 1)), undefined)
    assert.equal(credential.certificate?.fingerprint256, new X509Certificate(pair.cert).fingerprint256)
    createSecureContext({ ...credential.pair })
  }
})

test('a client credential that is missing, foreign or over is a problem, not a refusal', async (context) => {
  const claims = Buffer.from(JSON.stringify({ exp: 1_000 })).toString('base64url')
  const cases: [user: string, problem: RegExp | undefined][] = [
    ['client-certificate: gone, client-key: gone', /cannot be read/],
    ['client-certificate: c, client-key: other', /does not belong to its key/],
    ['client-certificate: other, client-key: c', /no PEM/],
    ['tokenFile: gone', /token file .* cannot be read/],
    ['', /neither a client certificate nor a token/],
    [`token: a.${claims}.c`, /token expired on 1970-01-01T00:16:40/],
    ['token: opaque', undefined],
    ['client-certificate: c, client-key: k', undefined],
  ]
  const files = { c: pair.cert, k: pair.key, other: issue({ use: 'client', name: 'x' }).key }
  for (const [user, problem] of cases) {
    const { credential } = await readKubeconfig(folder(context, { ...files, config: config('', user) }))
    const found = problemOf(credential, Date.UTC(2026, 0, 1))
    if (problem === undefined) assert.equal(found, undefined, user)
    else assert.match(found ?? 'none', problem, user)
  }
})

test('who a credential stands for is its certificate’s common name, or the service account of its token', async (context) => {
  const token = (sub: string) => `a.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.c`
  const account = 'system:serviceaccount:ake-edges:edge-2'
  const name = [new X509Certificate(pair.cert).toLegacyObject().subject.CN].flat().at(-1)
  const cases: [user: string, name: string | undefined][] = [
    ['client-certificate: c, client-key: k', name],
    [`token: ${token(account)}`, account],
    // As whom the API server takes another's claims is its own affair; of two credentials the token counts.
    [`token: ${token('0815')}`, undefined],
    ['token: opaque', undefined],
    [`client-certificate: c, client-key: k, token: ${token(account)}`, account],
  ]
  for (const [user, expected] of cases) {
    const path = folder(context, { c: pair.cert, k: pair.key, config: config('', user) })
    assert.equal(lifeOf('edge', (await readKubeconfig(path)).credential).name, expected, user)
  }
})
