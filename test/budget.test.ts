/** The budget of what an edge mirrors, as processes: a caller that reads hundreds of names, and the others beside it. */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../src/base/until.test-support.ts'
import { issueCertificate } from '../src/pki/certificate.ts'
import { type Site, statusOf, withSiteHere } from './edgeprocess.ts'
import { Client, configMap, configMaps } from './process.ts'

const hourMs = 3_600_000
const secrets = '/api/v1/namespaces/default/secrets'
const pods = '/api/v1/namespaces/default/pods?resourceVersion=0'
const services = '/api/v1/services?labelSelector=app&resourceVersion=0'
const nameOf = (at: number) => `x${String(at).padStart(3, '0')}`
const callers = ['operator', 'system:node:n1'] as const

type Shown = {
  budget: { interests: number; bytes: number; bytesMax: number }
  interests: { resource: string; namespace?: string; fields?: string; state: string }[]
}

/** A client certificate of the cloud's own authority, which the edge presents for the client that shows it here. */
function certify(site: Site, commonName: string): { cert: string; key: string; option: string } {
  const authority = join(site.cloudFolder, 'pki', 'ca.key')
  const key = createPrivateKey(readFileSync(authority))
  const now = Date.now()
  const request = {
    use: 'client',
    subject: { commonName, organization: 'system:masters' },
    notBefore: now - hourMs,
    notAfter: now + 24 * hourMs,
  } as const
  const credential = issueCertificate(request, { name: { commonName: 'ake-ca' }, key })
  const files = (['cert', 'key'] as const).map((part) => {
    const path = join(site.folder, `${commonName.replaceAll(':', '-')}.${part}`)
    writeFileSync(path, credential[part])
    return path
  })
  return { ...credential, option: `${commonName}=${files.join()}` }
}

async function shown(site: Site): Promise<Shown> {
  return JSON.parse(await statusOf(site.edgeFolder, '--output', 'json')) as Shown
}

/** What `ake status` would show, asked for without a process each time. */
const asked = (site: Site) => site.administrator().json<Shown>('GET', '/ake/status')

/** Many requests, some at a time, each again where it is told to come later; every answer is a 200 in the end. */
async function readAll(client: Client, paths: readonly string[]): Promise<void> {
  const read = async (path: string) => {
    let answer = await client.ask('GET', path)
    for (let again = 0; answer.status === 429 && again < 20; again++) {
      await pause(1_000)
      answer = await client.ask('GET', path)
    }
    assert.equal(answer.status, 200, `${path}: ${answer.body}`)
  }
  for (let at = 0; at < paths.length; at += 8) await Promise.all(paths.slice(at, at + 8).map(read))
}

test('[A8] 700 names read by one caller take nobody’s room: lists, and what the kubelet read, survive the cloud and a restart', () =>
  withSiteHere([], async (site) => {
    const direct = site.client(site.cloud)
    const names = Array.from({ length: 350 }, (_, at) => nameOf(at))
    for (const name of names) {
      const metadata = { name }
      await Promise.all([
        direct.json('POST', configMaps, configMap(name, { value: name })),
        direct.json('POST', secrets, { apiVersion: 'v1', kind: 'Secret', metadata }),
      ])
    }
    const certificates = callers.map((caller) => certify(site, caller))
    await site.edge.end()
    site.isEdgeProcess = true
    const clientCa = join(site.cloudFolder, 'pki', 'ca.crt')
    await site.startEdge(
      '--client-ca',
      clientCa,
      ...certificates.flatMap(({ option }) => ['--client-credential', option]),
    )
    await site.untilCloudIs('reachable')
    const clientOf = (at: number) => {
      const { cert, key } = certificates[at] as (typeof certificates)[number]
      return new Client({ url: site.edge.url, credentials: { ca: site.edge.credentials.ca, cert, key } })
    }
    const [operator, kubelet] = [clientOf(0), clientOf(1)]
    await readAll(kubelet, [`${secrets}/${nameOf(7)}`])
    await readAll(operator, [
      ...names.map((name) => `${secrets}/${name}`),
      ...names.map((name) => `${configMaps}/${name}`),
    ])
    // Many names of one namespace have become the namespace; Secrets stay what was asked for, within the caller's share.
    const isGathered = ({ interests }: Shown) =>
      interests.some((one) => one.resource === 'configmaps' && one.fields === undefined && one.state === 'synced')
    await until(async () => isGathered(await asked(site)), 'the namespace')
    const { interests, budget } = await shown(site)
    assert.deepEqual(
      interests.filter((one) => one.resource === 'secrets' && one.fields === undefined),
      [],
    )
    assert.ok(budget.interests <= 301 && budget.bytes <= budget.bytesMax, JSON.stringify(budget))
    await readAll(operator, [pods])
    await readAll(site.client(), [services])
    await until(async () => {
      const states = (await asked(site)).interests.filter(({ resource }) => ['pods', 'services'].includes(resource))
      return states.length === 2 && states.every(({ state }) => state === 'synced')
    }, 'both lists')
    await site.cloud.end()
    await site.untilCloudIs('unreachable')
    for (const client of [operator, kubelet]) client.close()
    await site.edge.end('SIGKILL')
    site.isEdgeProcess = false
    await site.startEdge()
    const [again, node] = [clientOf(0), clientOf(1)]
    await readAll(again, [pods, `${configMaps}/${nameOf(349)}`])
    await readAll(site.client(), [services])
    await readAll(node, [`${secrets}/${nameOf(7)}`])
    assert.equal((await site.client().ask('GET', '/api/v1/endpoints?resourceVersion=0')).status, 503)
    const text = await statusOf(site.edgeFolder)
    assert.match(text, /\nMirrored: +\S+ of 192Mi, \d+ of 1000 interests\n/)
    for (const client of [again, node]) client.close()
  }))
