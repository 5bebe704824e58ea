/** `ake hub issue` over a Secret of a real API server: several at once, as hubs that start together would be. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseCredential } from '../src/pki/credentialfile.ts'
import { Client, runAke, withFolder } from './process.ts'

const secrets = '/api/v1/namespaces/default/secrets'

test('three processes at once on a Secret that is not there issue under one authority; one that was emptied is refused', () =>
  withFolder(async (folder, serve) => {
    const outs = mkdtempSync(join(tmpdir(), 'ake-hubissue-'))
    try {
      const serving = await serve()
      const args = ['--state', 'secret:default/hub', '--kubeconfig', join(folder, 'admin.kubeconfig')]
      const issue = async (name: string) => {
        const out = join(outs, `${name}.pem`)
        const { code, stderr } = await runAke(['hub', 'issue', name, ...args, '--out', out]).ended
        return { code, stderr, out }
      }
      const all = await Promise.all(['a', 'b', 'c'].map(issue))
      assert.deepEqual(
        all.map(({ code, stderr }) => [code, stderr]),
        [1, 2, 3].map(() => [0, '']),
      )
      const credentials = all.map(({ out }) => parseCredential(readFileSync(out, 'utf8'), out))
      assert.equal(new Set(credentials.map(({ ca }) => ca)).size, 1)
      assert.equal(new Set(credentials.map(({ pair }) => pair.key)).size, 3)
      const client = new Client(serving)
      const secret = await client.json<{ data?: object }>('GET', `${secrets}/hub`)
      await client.json('PUT', `${secrets}/hub`, { ...secret, data: {} })
      const { code, stderr } = await issue('d')
      assert.equal(code, 2)
      assert.match(stderr, /^ake: the hub's state in the Secret default\/hub is damaged \(it is empty\): restore it/)
      client.close()
    } finally {
      rmSync(outs, { recursive: true })
    }
  }))
