/** What the kubelet of an edge's node mounts into pods as the cluster's CA, with real processes and the line cut. */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { issueCertificate } from '../src/pki/certificate.ts'
import { type Site, withSiteHere } from './edgeprocess.ts'
import { Client, configMap, configMaps, Watch } from './process.ts'

const node = 'system:node:n1'
const clusterCa = '-----BEGIN CERTIFICATE-----\nY2x1c3Rlcg==\n-----END CERTIFICATE-----\n'
const named = `${configMaps}?fieldSelector=metadata.name%3Dkube-root-ca.crt`

type Listed = { metadata: { resourceVersion: string }; items: { data: Record<string, string> }[] }

/** A certificate of the cloud's own authority: a client that has it is its caller there. */
function certify(site: Site): { cert: string; key: string; options: string[] } {
  const file = (name: string) => join(site.cloudFolder, 'pki', name)
  const issuer = { name: { commonName: 'ake-ca' }, key: createPrivateKey(readFileSync(file('ca.key'), 'utf8')) }
  const dates = { notBefore: 0, notAfter: Date.now() + 3_600_000 }
  const subject = { commonName: node, organization: 'system:nodes' }
  const pair = issueCertificate({ use: 'client', subject, ...dates }, issuer)
  const [cert, key] = [join(site.folder, 'node.crt'), join(site.folder, 'node.key')]
  writeFileSync(cert, pair.cert)
  writeFileSync(key, pair.key)
  return { ...pair, options: ['--client-ca', file('ca.crt'), '--client-credential', `${node}=${cert},${key}`] }
}

test('[A3] the kubelet sees the edge’s authority in kube-root-ca.crt: cut, restarted, and with another authority after one 410', () =>
  withSiteHere(['--mirror', 'configmaps'], async (site) => {
    const { cert, key, options } = certify(site)
    await site.edge.end()
    site.isEdgeProcess = true
    await site.startEdge('--node', 'n1', '--in-cluster', 'ca', '--mirror', 'configmaps', ...options)
    await site.client(site.cloud).json('POST', configMaps, configMap('kube-root-ca.crt', { 'ca.crt': clusterCa }))
    const kubelet = () => new Client({ url: site.edge.url, credentials: { ca: site.edge.credentials.ca, cert, key } })
    const ours = () => readFileSync(join(site.edgeFolder, 'pki', 'ca.crt'), 'utf8')
    const caOf = async (client: Client) => {
      const { items, metadata } = await client.json<Listed>('GET', `${named}&resourceVersion=0`)
      return { at: metadata.resourceVersion, ca: items[0]?.data['ca.crt'] }
    }
    let client = kubelet()
    await until(async () => (await caOf(client)).ca === clusterCa + ours(), 'the kubelet sees it')
    assert.equal((await caOf(site.client())).ca, clusterCa, 'the administrator sees what there is')
    const { at } = await caOf(client)
    const resume = () => new Watch(client, `${named}&watch=1&allowWatchBookmarks=true&resourceVersion=${at}`)
    let watch = resume()
    await watch.opened()

    await site.link.set('refuse')
    await site.untilCloudIs('unreachable')
    client.close()
    await site.edge.end('SIGKILL')
    site.isEdgeProcess = false
    await site.startEdge()
    client = kubelet()
    assert.equal((await caOf(client)).ca, clusterCa + ours())
    watch = resume()
    await watch.until((frames) => frames.length > 0)
    assert.equal(watch.frames[0]?.type, 'BOOKMARK', 'it resumes')

    client.close()
    const before = ours()
    await site.edge.end()
    rmSync(join(site.edgeFolder, 'pki'), { recursive: true })
    await site.startEdge()
    assert.notEqual(ours(), before)
    client = kubelet()
    watch = resume()
    await watch.ended
    assert.deepEqual(
      watch.frames.map(({ object }) => object.code),
      [410],
    )
    assert.equal((await caOf(client)).ca, clusterCa + ours())
    watch = resume()
    await watch.until((frames) => frames.length > 0)
    assert.equal(watch.frames[0]?.type, 'BOOKMARK', 'one 410 is enough')
    client.close()
  }))
