/** What becomes of machines that have joined: their Node is deleted, or the cluster's authority of clients becomes another one. */
import { createPrivateKey } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { issueCertificate, pemsIn } from '../../src/pki/certificate.ts'
import { credentialText, parseCredential } from '../../src/pki/credentialfile.ts'
import type { Findings } from '../findings.ts'
import { ask } from '../oracle.ts'
import { Box } from './box.ts'
import type { JoiningWorld } from './world.ts'

type HubEdges = { readonly edges: readonly { readonly name: string; readonly interests: number }[] }

const dayMs = 24 * 3_600_000

/** The folder of a machine that joined, and a link with what lies in it. */
async function joinedBox(world: JoiningWorld, name: string): Promise<{ readonly data: string; readonly box: Box }> {
  const data = world.folder(name)
  const joined = await world.ake([...(await world.token()), '--name', name, '--data', data])
  if (joined.code !== 0) throw new Error(`${name} did not join: ${joined.err}`)
  const box = await Box.open({ file: join(data, 'credential.pem'), ports: [world.hub.port] })
  await world.until(`${name} has a link`, async () => box.link.current !== undefined)
  return { data, box }
}

/** A node made by its own kubelet, through us. */
export async function makeNode(box: Box, name: string): Promise<number> {
  const body = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } }))
  const headers = { 'content-type': 'application/json' }
  return (await box.ask('/api/v1/nodes', { method: 'POST', headers, body })).status
}

/** Its link ends and what it had goes; the name is not refused, and its kubelet makes the Node again. */
export async function checkDeleted(world: JoiningWorld, findings: Findings): Promise<void> {
  const name = 'edge-deleted'
  const { box } = await joinedBox(world, name)
  const held = async () => (await world.hub.status<HubEdges>()).edges.find((edge) => edge.name === name)?.interests
  const pods = `v1/pods?&spec.nodeName=${name}`
  findings.equal(await makeNode(box, name), 201, 'its node is made through the link')
  findings.equal(await box.wants(pods), 'given', 'it has the pods of its node')
  findings.equal(await held(), 1, 'the hub holds one interest of it')
  const before = box.link.current
  const startedMs = performance.now()
  const deleted = await ask(world.oracle, `/api/v1/nodes/${name}`, { method: 'DELETE' })
  findings.equal(deleted.status, 200, 'the Node is deleted')
  await world.until('its link ends', async () => box.link.current !== before)
  findings.note(
    `the link of a joined edge ended ${Math.round(performance.now() - startedMs)} ms after its Node was deleted`,
  )
  await world.until('it is back', async () => box.link.current !== undefined && box.link.current !== before)
  findings.equal(await held(), 0, 'the hub holds nothing of it any more')
  findings.equal(await makeNode(box, name), 201, 'its kubelet makes the Node again, with the same certificate')
  findings.equal(await box.wants(pods), 'given', 'it has the pods of its node again')
  findings.check(
    new RegExp(`info edge\\.deleted edge=${name}`).test(await readFile(world.folder('hub.log'), 'utf8')),
    'that it was deleted is in the log of the hub',
  )
  await box.end()
}

/** One that is listed beside the first, signs for an edge, and is listed no more. */
export async function checkAuthority(world: JoiningWorld, findings: Findings): Promise<void> {
  const { data, box } = await joinedBox(world, 'edge-known')
  const first = await readFile(join(data, 'cluster-ca.crt'), 'utf8')
  const edge = await world.startEdge('edge-known')
  await box.end()
  const known = async () => pemsIn(await readFile(join(data, 'cluster-ca.crt'), 'utf8'))
  const subject = { commonName: 'another-authority' }
  const now = Date.now()
  const dates = { notBefore: now - dayMs, notAfter: now + dayMs }
  const other = issueCertificate({ ...dates, use: 'authority', subject })
  try {
    await publish(world, `${first}${other.cert}`)
    await world.until('the edge has heard of another authority', async () => (await known()).length === 2)
    const issuer = { name: subject, key: createPrivateKey(other.key) }
    const node = { commonName: 'system:node:edge-other', organization: 'system:nodes' }
    const pair = issueCertificate({ ...dates, use: 'client', subject: node }, issuer)
    const { ca } = parseCredential(await readFile(join(data, 'credential.pem'), 'utf8'), '')
    await mkdir(world.folder('edge-other'), { recursive: true })
    const file = join(world.folder('edge-other'), 'credential.pem')
    await writeFile(file, credentialText({ ca, pair, title: '' }), { mode: 0o600 })
    const stranger = await Box.open({ file, ports: [world.hub.port] })
    await world.until('one that it signed has a link', async () => stranger.link.current !== undefined)
    await publish(world, first)
    await world.until('that link ends', async () => stranger.link.current === undefined)
    findings.check(
      /knows clients no more by the authority/.test(stranger.link.why),
      'it is told why',
      stranger.link.why,
    )
    await world.until('the edge has heard that it is gone', async () => (await known()).join('') === first)
    const has = async () => (await world.hub.status<HubEdges>()).edges.some(({ name }) => name === 'edge-known')
    findings.check(await has(), 'the edge of the first authority keeps its link')
    await stranger.end()
  } finally {
    await edge.kill()
  }
}

/** As API servers with these authorities would; they add their own, and take none away. */
async function publish(world: JoiningWorld, text: string): Promise<void> {
  const path = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication'
  const headers = { 'content-type': 'application/merge-patch+json' }
  const body = { data: { 'client-ca-file': text } }
  const { status, body: told } = await ask(world.oracle, path, { method: 'PATCH', headers, body })
  if (status !== 200) throw new Error(`PATCH ${path}: ${status} ${told}`)
}
