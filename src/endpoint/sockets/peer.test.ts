import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { connect as connectHttp2 } from 'node:http2'
import { test } from 'node:test'
import type { KeyPair } from '../../pki/certificate.ts'
import type { Request, Response } from '../endpoint.ts'
import { certifiedCaller } from '../ownaccess.ts'
import {
  admin,
  authority,
  issuedBy,
  open,
  own,
  type Running,
  readAll,
  readUntil,
  withServer,
} from './server.test-support.ts'

const handle = async ({ peer }: Request): Promise<Response> => ({
  status: 200,
  headers: {},
  body: Buffer.from(
    `${JSON.stringify({ caller: certifiedCaller(peer)?.name, unverified: peer.unverified, ...peer.certificate })}\n`,
  ),
})

type Told = { caller?: string; name?: string; issuedBy?: string; organizations?: string[]; expiresMs?: number }

async function tell(server: Running, credential?: KeyPair): Promise<Told> {
  const session = connectHttp2(server.url, { ca: own.cert, ...credential })
  const told = JSON.parse((await readAll(session.request({ ':path': '/' }))).toString())
  session.close()
  return told
}

const cluster = authority('kubernetes')
// Named as ours is: a name proves nothing.
const twin = authority('ake-ca')
const node = issuedBy(cluster, 'kubernetes', {
  subject: { commonName: 'system:node:edge-1', organization: 'system:nodes' },
})
const alike = issuedBy(twin, 'ake-ca', { subject: { commonName: 'ake-admin', organization: 'system:masters' } })
const expired = issuedBy(cluster, 'kubernetes', { notBefore: Date.now() - 2_000_000, notAfter: Date.now() - 1_000_000 })

test('[I1] whose authority signed it decides what a certificate is worth, not what the authority is called', () =>
  withServer({ handle, callersCa: `# the cluster\n${cluster.cert}\n${twin.cert}` }, async (server) => {
    const administrator = await tell(server, admin)
    assert.equal(administrator.caller, 'ake-admin')
    assert.equal(administrator.issuedBy, 'own')
    const kubelet = await tell(server, node)
    assert.equal(kubelet.caller, undefined)
    assert.equal(kubelet.name, 'system:node:edge-1')
    assert.equal(kubelet.issuedBy, 'clients')
    assert.deepEqual(kubelet.organizations, ['system:nodes'])
    assert.equal(kubelet.expiresMs, Date.parse(new X509Certificate(node.cert).validTo))
    // With our own authority's certificate in its chain too: what a peer sends beside its own proves nothing either.
    for (const credential of [alike, { ...alike, cert: alike.cert + own.cert }]) {
      const other = await tell(server, credential)
      assert.equal(other.caller, undefined)
      assert.equal(other.issuedBy, 'clients')
    }
  }))

test('no certificate, an unknown authority’s or an expired one: nobody in particular, and no error', () =>
  withServer({ handle, callersCa: cluster.cert }, async (server) => {
    assert.deepEqual(await tell(server), {})
    for (const credential of [alike, expired]) assert.deepEqual(await tell(server, credential), { unverified: true })
  }))

test('authorities change while it runs: at once for new connections, and whom none stands behind is cut', () =>
  withServer({ handle }, async (server) => {
    assert.deepEqual(await tell(server, node), { unverified: true })
    server.server.setCallersCa(cluster.cert)
    assert.equal((await tell(server, node)).name, 'system:node:edge-1')
    const ask = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
    const clients = [await open(server, node), await open(server, admin)] as const
    for (const client of clients) {
      client.write(ask)
      await readUntil(client, '}')
    }
    server.server.setCallersCa(twin.cert + cluster.cert)
    assert.throws(() => server.server.setCallersCa('nothing'), /no certificate in PEM form/)
    for (const client of clients) {
      client.write(ask)
      assert.match(await readUntil(client, '}'), /"name":"(system:node:edge-1|ake-admin)"/)
    }
    server.server.setCallersCa(twin.cert)
    await readAll(clients[0])
    assert.deepEqual(await tell(server, node), { unverified: true })
    assert.equal((await tell(server, alike)).issuedBy, 'clients')
    server.server.setCallersCa(undefined)
    assert.deepEqual(await tell(server, alike), { unverified: true })
    clients[1].write(ask)
    await readUntil(clients[1], '}')
    for (const client of clients) client.destroy()
  }))
