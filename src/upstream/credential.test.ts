import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { problemOf, readKubeconfig } from './credential.ts'
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
    assert.doesNotMatch(error.message, /very-secret/)
  }
  await assert.rejects(readKubeconfig('/nowhere/config'), /cannot be read: check --kubeconfig/)
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
