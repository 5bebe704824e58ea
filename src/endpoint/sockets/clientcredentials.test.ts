/** Who acts as a node for which a credential is configured: over real TLS, so that it is the certificate that counts. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import type { KeyPair } from '../../pki/certificate.ts'
import type { CallerCertificate } from '../../upstream/upstream.ts'
import type { Request, Response } from '../endpoint.ts'
import { identityOf } from '../identify.ts'
import { ClientCredentials } from './clientcredentials.ts'
import { authority, issuedBy, open, own, type Running, readAll, readUntil, withServer } from './server.test-support.ts'

const name = 'system:node:n1'
const cluster = authority('kubernetes')
/** Another authority of the same bundle, under the same name. */
const other = authority('kubernetes')

const by = (issuer: KeyPair, organization?: string, commonName = name) =>
  issuedBy(issuer, 'kubernetes', { subject: { commonName, ...(organization === undefined ? {} : { organization }) } })

const nodeCert = by(cluster, 'system:nodes')
const read = ({ cert }: KeyPair) => new X509Certificate(cert)

/** A server that answers whose request it is, with the credential that is configured at that time. */
function serving(
  configured: () => CallerCertificate,
  body: (server: Running) => Promise<void>,
  told: [name: string, why: string | undefined][] = [],
): Promise<void> {
  const find = (asked: string) => (asked === name ? configured() : undefined)
  const credentials = new ClientCredentials({ find, told: (whose, _, why) => told.push([whose, why]) })
  type Presented = NonNullable<Request['peer']['certificate']>
  const standingOf = (certificate: Presented) => credentials.standingOf(certificate)
  const handle = async (request: Request): Promise<Response> => {
    const identity = identityOf(request, { standingOf, nowMs: Date.now })
    return { status: 200, headers: {}, body: Buffer.from(`<${identity.kind}>`) }
  }
  return withServer({ handle, callersCa: cluster.cert + other.cert }, body)
}

async function asked(socket: TLSSocket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  return /<(.*)>/.exec(await readUntil(socket, '>'))?.[1] ?? ''
}

async function who(server: Running, credential: KeyPair): Promise<string> {
  const socket = await open(server, credential)
  const said = await asked(socket)
  socket.destroy()
  return said
}

test('[I1] only the subject and the authority of the configured certificate make a caller that node', () =>
  serving(
    () => read(nodeCert),
    async (server) => {
      const rows: [string, KeyPair, string][] = [
        ['itself', nodeCert, 'certificate'],
        ['renewed', by(cluster, 'system:nodes'), 'certificate'],
        ['with another organization', by(cluster, 'system:masters'), 'named'],
        ['without any', by(cluster), 'named'],
        ['of another authority of the bundle, under the same name', by(other, 'system:nodes'), 'anonymous'],
        ['of another name', by(cluster, 'system:nodes', 'system:node:n2'), 'named'],
      ]
      for (const [what, credential, kind] of rows) assert.equal(await who(server, credential), kind, what)
    },
  ))

test('[I1] a certificate with a uid is that of the configured caller only if that has the same one', () => {
  const signer = read(cluster).publicKey
  const credentials = new ClientCredentials({ find: () => read(nodeCert), told: () => {} })
  const issued = { name, organizations: ['system:nodes'], issuedBy: 'clients', expiresMs: 0, signer } as const
  const standing = (uids: readonly string[] | undefined) => credentials.standingOf({ ...issued, uids })
  assert.deepEqual([[], ['u-1'], [''], undefined].map(standing), ['credential', 'named', 'named', 'named'])
})

test('[I1] a resumed TLS session is judged by the same certificate', () =>
  serving(
    () => read(nodeCert),
    async (server) => {
      const rows: [KeyPair, string][] = [
        [nodeCert, 'certificate'],
        [by(other, 'system:nodes'), 'anonymous'],
        [by(cluster, 'devs'), 'named'],
      ]
      for (const [credential, kind] of rows) {
        const first = await open(server, credential)
        const ticket = once(first, 'session')
        assert.equal(await asked(first), kind)
        const [session] = (await ticket) as [Buffer]
        const options = { host: '127.0.0.1', port: server.port, ca: own.cert, ALPNProtocols: ['http/1.1'] }
        const again = connect({ ...options, ...credential, session })
        await once(again, 'secureConnect')
        assert.equal(again.isSessionReused(), true)
        assert.equal(await asked(again), kind)
        for (const socket of [first, again]) socket.destroy()
      }
    },
  ))

test('[I1] a resumed TLS session knows the intermediate authority of its handshake, as long as the one above it counts', () =>
  serving(
    () => undefined,
    async (server) => {
      const between = issuedBy(cluster, 'kubernetes', { subject: { commonName: 'between' }, use: 'authority' })
      const leaf = issuedBy(between, 'between', { subject: { commonName: 'alice' } })
      const credential = { cert: leaf.cert + between.cert, key: leaf.key }
      const first = await open(server, credential)
      const ticket = once(first, 'session')
      assert.equal(await asked(first), 'named')
      const [session] = (await ticket) as [Buffer]
      const again = await open(server, { ...credential, session })
      assert.equal(again.isSessionReused(), true)
      assert.equal(await asked(again), 'named')
      server.server.setCallersCa(cluster.cert)
      assert.equal(await asked(again), 'named')
      server.server.setCallersCa(other.cert)
      await Promise.all([first, again].map(readAll))
      for (const socket of [first, again]) socket.destroy()
    },
  ))

test('[I1] the files are renewed: what they hold counts, and who was taken for it stays so while it is connected', async () => {
  let configured: CallerCertificate = read(nodeCert)
  await serving(
    () => configured,
    async (server) => {
      const renewed = by(other, 'system:nodes')
      const connected = await open(server, nodeCert)
      assert.equal(await asked(connected), 'certificate')
      const early = await open(server, renewed)
      assert.equal(await asked(early), 'anonymous', 'the files are not read again yet')
      // Another authority signs from now on.
      configured = read(renewed)
      assert.equal(await asked(early), 'certificate')
      assert.equal(await asked(connected), 'certificate')
      assert.equal(await who(server, nodeCert), 'anonymous')
      configured = read(by(other, 'other'))
      assert.equal(await asked(connected), 'anonymous', 'a credential of somebody else')
      for (const socket of [connected, early]) socket.destroy()
    },
  )
})

test('[I1] while the files of a credential cannot be used only the caller of the last usable one is that caller, before that none is', async () => {
  const told: [name: string, why: string | undefined][] = []
  let configured: CallerCertificate = 'unusable'
  await serving(
    () => configured,
    async (server) => {
      const others = by(other, 'system:nodes')
      const early = await open(server, nodeCert)
      assert.equal(await asked(early), 'named')
      assert.equal(await who(server, others), 'named')
      assert.match(told.splice(0).join(), /the files of --client-credential system:node:n1 hold nothing .*: mend them/)
      configured = read(nodeCert)
      assert.equal(await asked(early), 'certificate')
      // The first half of a rotation.
      configured = 'unusable'
      const rows: [string, KeyPair, string][] = [
        ['itself', nodeCert, 'certificate'],
        ['of another authority of the bundle, under the same name', others, 'anonymous'],
        ['with other groups', by(cluster, 'system:masters'), 'named'],
        ['without any', by(cluster), 'named'],
      ]
      for (const [what, credential, kind] of rows) assert.equal(await who(server, credential), kind, what)
      assert.equal(await asked(early), 'certificate')
      early.destroy()
    },
    told,
  )
})

test('a certificate that maps to no credential is told with its reason, once for each connection', async () => {
  const told: [name: string, why: string | undefined][] = []
  const heard = () => told.splice(0).map(([whose, why]) => `${whose}: ${why}`)
  await serving(
    () => read(nodeCert),
    async (server) => {
      const unknown = await open(server, by(cluster, 'devs', 'alice'))
      for (let request = 0; request < 3; request++) assert.equal(await asked(unknown), 'named')
      unknown.destroy()
      assert.deepEqual(heard(), ['alice: no credential is configured for it: give --client-credential alice=CERT,KEY'])
      await who(server, by(cluster, 'system:masters'))
      assert.match(heard().join(), /its organizations \(system:masters\) are not those of .*n1 \(system:nodes\): give/)
      await who(server, by(other, 'system:nodes'))
      assert.match(heard().join(), /another authority signed it than that of --client-credential system:node:n1: give/)
      await who(server, nodeCert)
      assert.deepEqual(heard(), [`${name}: undefined`])
    },
    told,
  )
})

test('[I1] the node that a hub stands for is the caller that the authorities of callers name so, by exactly its subject', () =>
  serving(
    () => ({ organizations: ['system:nodes'] }),
    async (server) => {
      const rows: [string, KeyPair, string][] = [
        ['of the cluster', nodeCert, 'certificate'],
        ['of another authority of the bundle', by(other, 'system:nodes'), 'certificate'],
        ['with other groups', by(cluster, 'system:masters'), 'named'],
        ['without a group', by(cluster), 'named'],
        ['another node', by(cluster, 'system:nodes', 'system:node:another'), 'named'],
      ]
      for (const [what, credential, expected] of rows) assert.equal(await who(server, credential), expected, what)
    },
  ))
