/** An edge that was configured wrongly says so at once, in its log and in `ake status`, with what to do. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { outputOf, Site, statusOf } from './edgeprocess.ts'

test('what cannot work is in the log and in ake status, each once', async () => {
  const site = new Site()
  site.isEdgeProcess = false
  try {
    await site.startCloud()
    const { cert, key } = site.cloud.credentials
    const [certFile, keyFile] = [join(site.folder, 'c'), join(site.folder, 'k')]
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
    await site.startEdge(
      ...['--mirror', 'pod', '--mirror', 'deploymnts', '--mirror', 'nodes@shop'],
      ...['--client-credential', `kubelet=${certFile},${keyFile}`],
      ...['--client-credential', `proxy=${join(site.folder, 'gone')},${keyFile}`],
    )
    const printed = async () => (await outputOf(['status', '--data', site.edgeFolder])).stdout.replaceAll(/\s+/g, ' ')
    await until(async () => /deploymnts/.test(await statusOf(site.edgeFolder)), 'discovery was read')
    const expected = [
      /--mirror deploymnts: the API server has no such resource, .*: did you mean "deployments"\?/,
      /--mirror nodes@shop: nodes are in no namespace: write --mirror nodes/,
      /--client-credential kubelet: the client certificate \S+ bears the common name "ake-admin", not "kubelet": give/,
      /--client-credential proxy: the client certificate \S+ cannot be read \(no such file or directory\): check its path/,
      /--client-credential has no effect without --client-ca: give/,
    ]
    const status = await printed()
    const { stderr } = await site.edge.end()
    const lines = stderr.replaceAll('\\"', '"').split('\n')
    for (const sentence of expected) {
      assert.match(status, sentence)
      assert.equal(lines.filter((line) => sentence.test(line)).length, 1, `${sentence} in ${stderr}`)
    }
    assert.doesNotMatch(status, /--mirror pod\b/, 'a singular is a name too')
  } finally {
    await site.end()
  }
})
