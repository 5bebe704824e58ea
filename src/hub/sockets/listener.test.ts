import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { until, untilStill } from '../../base/until.test-support.ts'
import { type CertificateName, issueCertificate } from '../../pki/certificate.ts'
import { dialTcp } from '../../upstream/dial.ts'
import { type HubDialParts, HubRefusal } from '../../upstream/linked/hubdial.ts'
import { HubTicketPouch } from '../../upstream/linked/tickets.ts'
import { makeState, makeTickets } from '../state/state.ts'
import { connect, credentialOf, type HubParts, startHub } from './hub.test-support.ts'

async function withHub(parts: HubParts, body: (hub: Awaited<ReturnType<typeof startHub>>) => Promise<void>) {
  const hub = await startHub(parts)
  try {
    await body(hub)
  } finally {
    await hub.close()
  }
}

/** Until the ticket of a first link is there. */
async function ticketed(hub: Awaited<ReturnType<typeof startHub>>, host = '127.0.0.1') {
  const tickets = new HubTicketPouch()
  const credential = credentialOf(hub.state)
  const first = await connect(hub.state, { address: hub.address(host), tickets, credential })
  first.link.send(Buffer.from('hello'))
  await until(() => tickets.get(host))
  first.link.close('done', 'enough')
  await first.ended
  return { tickets, credential }
}

const year = 365 * 24 * 3600_000

test('frames both ways, who is there, and an end with its reason on both sides', () =>
  withHub({}, async (hub) => {
    const edge = await connect(hub.state, { address: hub.address() })
    const [there] = hub.links
    assert.ok(there)
    assert.equal(there.link.peer.name, 'edge-1')
    assert.equal(there.link.peer.resumed, false)
    assert.match(there.link.peer.certificate.fingerprint, /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
    assert.ok(there.link.peer.certificate.endsAtMs > Date.now() + year)
    assert.ok(edge.link.peer.endsAtMs > Date.now() + year)
    for (const size of [0, 1, 126, 65_536]) {
      edge.link.send(Buffer.alloc(size, 1))
      there.link.send(Buffer.alloc(size, 2))
    }
    assert.throws(() => edge.link.send(Buffer.alloc(65_537)), RangeError)
    await until(() => there.frames.length === 4 && edge.frames.length === 4)
    assert.deepEqual(
      [there, edge].map(({ frames }) => frames.map(({ length, ...bytes }) => [length, bytes[0]])),
      [1, 2].map((byte) => [0, 1, 126, 65_536].map((size) => [size, size === 0 ? undefined : byte])),
    )
    there.link.close('away', `moved ${'é'.repeat(80)}`)
    assert.equal(there.link.send(Buffer.of(1)), false)
    const [here, far] = [await there.ended, await edge.ended]
    assert.equal(here.by, 'us')
    assert.equal(far.by, 'peer')
    assert.match(far.why, /^it said "moved é+" \(1001\)$/)
    await until(() => hub.listener.links === 0)
  }))

test('[L23] a session is resumed after a restart of the hub with the same state, and by another hub with it', async () => {
  await using first = await startHub()
  const { tickets, credential } = await ticketed(first)
  await first.close()
  await using again = await startHub({ state: first.state, port: first.port })
  await using other = await startHub({ state: first.state })
  for (const hub of [again, other, again]) {
    const edge = await connect(first.state, { address: hub.address(), tickets, credential })
    assert.equal(edge.link.peer.resumed, true)
    const { peer } = hub.links.at(-1)!.link
    assert.equal(peer.resumed, true)
    assert.equal(peer.name, 'edge-1')
    assert.equal(peer.certificate.fingerprint, credential.certificate.fingerprint256)
    edge.link.close('done', '')
    await edge.ended
  }
  assert.deepEqual(other.listener.counts, { full: 0, resumed: 1, refused: 0 })
})

test('not where the ticket key or the context is another: a full handshake follows by itself, and is kept', async () => {
  await using first = await startHub()
  const { state } = first
  for (const changed of [{ tickets: makeTickets(0) }, { sessionIdContext: 'ff' }]) {
    const { tickets, credential } = await ticketed(first)
    await withHub({ state: { ...state, ...changed } }, async (hub) => {
      const stale = tickets.get('127.0.0.1')
      const edge = await connect(state, { address: hub.address(), tickets, credential })
      assert.equal(edge.link.peer.resumed, false)
      await until(() => tickets.get('127.0.0.1') !== undefined && tickets.get('127.0.0.1') !== stale)
      const next = await connect(state, { address: hub.address(), tickets, credential })
      assert.equal(next.link.peer.resumed, true)
    })
  }
})

test('a hub that rotates its ticket key while it runs, or renews its certificate', () =>
  withHub({}, async (hub) => {
    const { tickets, credential } = await ticketed(hub)
    const { hubPair } = await import('../state/certificates.ts')
    hub.listener.setServing(hubPair(hub.state, ['127.0.0.1'], Date.now()))
    const after = await connect(hub.state, { address: hub.address(), tickets, credential })
    assert.equal(after.link.peer.resumed, true, 'tickets outlive the serving certificate')
    const { key } = makeTickets(0)
    hub.adopt({ ...hub.state, tickets: { key, madeAtMs: 0 } })
    assert.equal((await connect(hub.state, { address: hub.address(), tickets, credential })).link.peer.resumed, false)
    await withHub({ state: { ...hub.state, tickets: { key, madeAtMs: 0 } } }, async (other) => {
      await until(() => tickets.get('127.0.0.1'))
      assert.equal(
        (await connect(hub.state, { address: other.address(), tickets, credential })).link.peer.resumed,
        true,
      )
    })
  }))

test('a name has tickets of its own: the certificate was judged under it', () =>
  withHub({}, async (hub) => {
    const { tickets, credential } = await ticketed(hub, 'localhost')
    for (const [host, resumed] of [
      ['127.0.0.1', false],
      ['localhost', true],
    ] as const)
      assert.equal(
        (await connect(hub.state, { address: hub.address(host), tickets, credential })).link.peer.resumed,
        resumed,
      )
  }))

test("[L23] an edge's certificate that ended is refused on a resumed session too, by the hub's clock", async () => {
  let nowMs = Date.now()
  const clock = { ...systemClock, now: () => nowMs }
  const told: string[] = []
  await withHub({ clock, unusable: ({ name }) => void told.push(name) }, async (hub) => {
    const { tickets, credential } = await ticketed(hub)
    nowMs += 3 * year
    const late = connect(hub.state, { address: hub.address(), tickets, credential })
    await assert.rejects(late, (error: Error) => {
      assert.ok(error instanceof HubRefusal)
      assert.match(error.message, /^it refuses \(401\): the certificate has expired: issue a new one/)
      return true
    })
    assert.equal(hub.listener.counts.resumed, 1)
    assert.equal(hub.links.length, 1)
    assert.equal(told.length, 1, 'the hub hears whose it is')
    // What another authority signed says nothing of a node.
    await assert.rejects(connect(makeState(Date.now()), { address: hub.address() }))
    assert.equal(told.length, 1)
  })
})

test('[L23] a certificate that was taken back is refused, resumed or not; the hook hears which it is', async () => {
  const revoked = new Set<string>()
  const hook = ({ certificate }: { certificate: { serial: string } }) =>
    revoked.has(certificate.serial) ? 'the certificate was taken back' : undefined
  await withHub({ revoked: hook }, async (hub) => {
    const { tickets, credential } = await ticketed(hub)
    revoked.add(credential.certificate.serialNumber)
    for (const pouch of [tickets, new HubTicketPouch()])
      await assert.rejects(
        connect(hub.state, { address: hub.address(), tickets: pouch, credential }),
        /\(403\).*taken back/,
      )
    assert.deepEqual(hub.listener.counts, { full: 2, resumed: 1, refused: 2 })
    await connect(hub.state, { address: hub.address(), credential: credentialOf(hub.state) })
  })
})

test('another authority is refused by either side, with a sentence', () =>
  withHub({}, async (hub) => {
    const foreign = credentialOf(makeState(Date.now()))
    await assert.rejects(
      connect(hub.state, { address: hub.address(), credential: foreign }),
      /its certificate is not signed by an authority of the credential/,
    )
    const own = credentialOf(hub.state)
    const mixed = { ...foreign, ca: own.ca, authorities: own.authorities }
    await assert.rejects(
      connect(hub.state, { address: hub.address(), credential: mixed }),
      /\(401\).*not signed by an authority of this hub or its cluster/,
    )
    assert.equal(hub.links.length, 0)
  }))

test('a certificate of this authority that names no node is refused', () =>
  withHub({}, async (hub) => {
    const { ca } = hub.state
    const own = credentialOf(hub.state)
    const issuer = { name: { commonName: 'ake-hub-ca' }, key: createPrivateKey(ca.key) }
    const dates = { notBefore: 0, notAfter: Date.now() + year }
    const names: CertificateName[] = [
      { commonName: 'edge-1', organization: 'system:nodes' },
      { commonName: 'system:node:', organization: 'system:nodes' },
      { commonName: 'system:node:Edge_1', organization: 'system:nodes' },
      { commonName: 'system:node:edge-1', organization: 'system:masters' },
      { commonName: 'system:node:edge-1' },
    ]
    for (const subject of names) {
      const credential = { ...own, pair: issueCertificate({ ...dates, use: 'client', subject }, issuer) }
      await assert.rejects(
        connect(hub.state, { address: hub.address(), credential }),
        /\(401\): the certificate names no node/,
      )
    }
    const subject = { commonName: 'system:node:edge-1', organization: 'system:nodes' }
    const server = issueCertificate({ ...dates, use: 'server', subject, hosts: ['edge-1'] }, issuer)
    await assert.rejects(
      connect(hub.state, { address: hub.address(), credential: { ...own, pair: server } }),
      /\(401\)/,
    )
    assert.equal(hub.links.length, 0)
  }))

test("[L23] the hub's certificate: its name, its use, and its time by what the edge trusts and not by its clock", async () => {
  const state = makeState(Date.now())
  await withHub({ state, hosts: ['hub.example'] }, async (hub) => {
    await assert.rejects(connect(state, { address: hub.address() }), /its certificate is for another name/)
  })
  await withHub({ state }, async (hub) => {
    const at = (now: number) => connect(state, { address: hub.address(), now: () => now })
    await at(0)
    await at(Date.now() + year)
    await assert.rejects(at(Date.now() + 3 * year), /its certificate has expired \(or the time that this edge trusts/)
  })
  // By the clock of this machine it ended long ago.
  const old = makeState(Date.UTC(2010, 0, 1))
  const ended = issueCertificate(
    {
      use: 'server',
      subject: { commonName: 'ake-hub' },
      hosts: ['127.0.0.1'],
      notBefore: 0,
      notAfter: Date.UTC(2020, 0, 1),
    },
    { name: { commonName: 'ake-hub-ca' }, key: createPrivateKey(old.ca.key) },
  )
  await withHub({ state: old }, async (hub) => {
    hub.listener.setServing(ended)
    const { tickets, credential } = { tickets: new HubTicketPouch(), credential: credentialOf(old) }
    const then = () => Date.UTC(2019, 0, 1)
    const edge = await connect(old, { address: hub.address(), tickets, credential, now: then })
    await until(() => tickets.get('127.0.0.1'))
    assert.equal(
      (await connect(old, { address: hub.address(), tickets, credential, now: then })).link.peer.resumed,
      true,
    )
    await assert.rejects(connect(old, { address: hub.address(), tickets, credential }), /its certificate has expired/)
    assert.equal(edge.end, undefined)
  })
})

test('[L22] a hub that drains, or is full, says when to come back; what it has stays', () =>
  withHub({ limits: { linksMax: 1, crowdedMs: 4_000 } }, async (hub) => {
    const edge = await connect(hub.state, { address: hub.address() })
    const refused = async (most: number) => {
      await assert.rejects(connect(hub.state, { address: hub.address() }), (error: Error) => {
        assert.ok(error instanceof HubRefusal)
        assert.match(error.message, /^it refuses \(503\): this hub takes no more edges now$/)
        assert.ok(error.retryAfterMs >= most / 2 && error.retryAfterMs <= most + 1_000, String(error.retryAfterMs))
        return true
      })
    }
    await refused(8_000)
    hub.listener.drain()
    // Behind the same address there may be others by then.
    await refused(2_000)
    assert.equal(edge.end, undefined)
  }))

test('[L5] what is sent in one turn is one record of TLS', () =>
  withHub({}, async (hub) => {
    const lines: Awaited<ReturnType<HubDialParts['dial']>>[] = []
    const dial: HubDialParts['dial'] = async (...asked) => {
      const line = await dialTcp()(...asked)
      lines.push(line)
      return line
    }
    const edge = await connect(hub.state, { address: hub.address(), dial })
    const [there] = hub.links
    there?.link.send(Buffer.of(1))
    await until(() => edge.frames.length === 1)
    // Tickets come behind the handshake, when they may.
    const before = await untilStill(() => lines[0]?.bytesRead ?? 0)
    for (let at = 0; at < 10; at++) there?.link.send(Buffer.of(at))
    await until(() => edge.frames.length === 11)
    assert.equal((lines[0]?.bytesRead ?? 0) - before, 22 + 10 * 3)
  }))
