/** Where an edge listens and what its certificate names, with real processes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { freePorts } from '../conformance/ports.ts'
import { until } from '../src/base/until.test-support.ts'
import { type Site, withSiteHere } from './edgeprocess.ts'

const services = '/api/v1/namespaces/default/services'

async function connected(site: Site, host: string, port: number): Promise<TLSSocket> {
  const { ca } = site.edge.credentials
  const socket = connect({ host, port, ca, ALPNProtocols: ['http/1.1'] })
  await once(socket, 'secureConnect')
  return socket
}

async function namesAt(site: Site, host: string, port: number): Promise<string> {
  const socket = await connected(site, host, port)
  const { subjectaltname = '' } = socket.getPeerCertificate() as PeerCertificate
  socket.destroy()
  return subjectaltname
}

test('an edge serves on each --listen, for its node’s name and the service’s address as soon as that is known', async () => {
  const [second = 0] = await freePorts(1)
  await withSiteHere(['--node', 'n1', '--listen', `127.0.0.2:${second}`], async (site) => {
    assert.match(await namesAt(site, '127.0.0.2', second), /DNS:kubernetes\.default\.svc/)
    assert.match(await namesAt(site, '127.0.0.1', site.edge.port), /DNS:n1/)
    const open = await connected(site, '127.0.0.1', site.edge.port)
    const cloud = site.client(site.cloud)
    await cloud.json('DELETE', `${services}/kubernetes`)
    const spec = { clusterIP: '10.43.0.1', clusterIPs: ['10.43.0.1'], ports: [{ port: 443 }] }
    await cloud.json('POST', services, { apiVersion: 'v1', kind: 'Service', metadata: { name: 'kubernetes' }, spec })
    await until(async () => (await namesAt(site, '127.0.0.2', second)).includes('10.43.0.1'), 'the address is named')
    assert.equal(open.destroyed || open.readableEnded, false, 'no connection is dropped for it')
    open.destroy()
    // Known from the first moment of a start without the cloud.
    await site.edge.end()
    await site.link.set('refuse')
    await site.startEdge()
    assert.match(await namesAt(site, '127.0.0.1', site.edge.port), /10\.43\.0\.1/)
  })
})
