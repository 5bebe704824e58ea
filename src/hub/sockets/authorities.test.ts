/** Whose certificates a hub takes, while its authorities and those of its cluster change under it. */
import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { issueCertificate } from '../../pki/certificate.ts'
import { HubRefusal } from '../../upstream/linked/hubdial.ts'
import { HubTicketPouch } from '../../upstream/linked/tickets.ts'
import { authoritiesOf, withCompromised, withNext, withoutOld, withSwitched } from '../state/authorities.ts'
import { makeState } from '../state/state.ts'
import { connect, credentialOf, credentialWith, startHub } from './hub.test-support.ts'

const day = 24 * 3600_000
const clusterName = { commonName: 'kubernetes' }
const cluster = issueCertificate({
  ...{ notBefore: Date.now() - day, notAfter: Date.now() + 365 * day },
  ...{ use: 'authority', subject: clusterName },
})
const clusterAuthority = new X509Certificate(cluster.cert)

/** As kube-controller-manager signs for a kubelet. */
function joined(
  name: string,
  { notBefore = Date.now() - 300_000, notAfter = Date.now() + day, organization = 'system:nodes' } = {},
) {
  const subject = { commonName: `system:node:${name}`, organization }
  return issueCertificate(
    { notBefore, notAfter, use: 'client', subject },
    { name: clusterName, key: createPrivateKey(cluster.key) },
  )
}

test('a certificate of the cluster counts once its authority is known, also for a session that was begun before', async () => {
  await using hub = await startHub()
  const tickets = new HubTicketPouch()
  const notBefore = Math.floor((Date.now() - 300_000) / 1000) * 1000
  const credential = credentialWith(hub.state, joined('edge-1', { notBefore }))
  const dial = () => connect(hub.state, { address: hub.address(), credential, tickets })
  await assert.rejects(dial, /\(401\).*not signed by an authority of this hub or its cluster/)
  hub.listener.setClusterAuthorities([clusterAuthority])
  assert.equal((await dial()).link.peer.resumed, true, 'the ticket of the refused one')
  const { name, certificate } = hub.links[0]!.link.peer
  assert.deepEqual([name, certificate.signer, certificate.issuedAtMs], ['edge-1', 'cluster', notBefore])
  assert.equal(certificate.authority, clusterAuthority.fingerprint256)
  for (const organization of ['system:masters', 'system:node']) {
    const other = credentialWith(hub.state, joined('edge-2', { organization }))
    await assert.rejects(connect(hub.state, { address: hub.address(), credential: other }), /names no node/)
  }
  hub.listener.setClusterAuthorities([])
  await assert.rejects(dial, /\(401\).*not signed by/, 'resumed, and its authority is gone')
})

test("while the cluster's authorities are not read, what none here has signed is told to come back, and what the hub signed is let in", async () => {
  let unread: string | undefined = 'not read yet: try again'
  await using hub = await startHub({ clusterUnread: () => unread })
  const credential = credentialWith(hub.state, joined('edge-1'))
  const dial = () => connect(hub.state, { address: hub.address(), credential })
  await assert.rejects(dial, (error: Error) => {
    assert.ok(error instanceof HubRefusal && error.retryAfterMs > 0)
    assert.match(error.message, /\(503\): not read yet: try again/)
    return true
  })
  await connect(hub.state, { address: hub.address(), credential: credentialOf(hub.state) })
  unread = undefined
  await assert.rejects(dial, /\(401\).*not signed by an authority of this hub or its cluster/)
})

test('what an edge is told whose certificate has ended goes by who signed it', async () => {
  await using hub = await startHub({ clusterAuthorities: [clusterAuthority] })
  const ended = joined('edge-1', { notAfter: Date.now() - 1_000 })
  const credential = credentialWith(hub.state, ended)
  await assert.rejects(
    connect(hub.state, { address: hub.address(), credential }),
    /\(401\): the certificate has expired: join again with "ake join"/,
  )
})

test('[L23] authorities are announced, switched and retired: certificates of the old one count until it is retired, resumed sessions included', async () => {
  await using hub = await startHub()
  const now = Date.now()
  const tickets = new HubTicketPouch()
  const before = credentialOf(hub.state)
  await connect(hub.state, { address: hub.address(), credential: before, tickets })
  const announced = withNext(hub.state, now)
  const told = { ...credentialWith(announced, before.pair) }
  hub.adopt(announced)
  const switched = withSwitched(announced, now)
  const renewed = credentialOf(switched)
  await connect(announced, { address: hub.address(), credential: renewed })
  assert.equal(hub.links.at(-1)?.link.peer.certificate.signer, 'hub', 'trusted before it signs')
  hub.adopt(switched)
  const resumed = await connect(hub.state, { address: hub.address(), credential: before, tickets })
  assert.equal(resumed.link.peer.resumed, true)
  for (const credential of [told, renewed]) {
    await connect(hub.state, { address: hub.address(), credential })
    const { certificate } = hub.links.at(-1)!.link.peer
    assert.equal(certificate.signer, 'hub')
    assert.ok(Math.abs(certificate.issuedAtMs - Date.now()) < 60_000)
  }
  hub.adopt(withoutOld(switched))
  await assert.rejects(
    connect(hub.state, { address: hub.address(), credential: told, tickets }),
    /\(401\).*not signed by an authority of this hub/,
  )
  await assert.rejects(connect(hub.state, { address: hub.address(), credential: told }), /\(401\)/)
  await connect(hub.state, { address: hub.address(), credential: renewed })
})

test('where others have its key an authority counts no more from the step on that replaces it, nor does a session of it; those of the next one do', async () => {
  await using hub = await startHub()
  const tickets = new HubTicketPouch()
  const forged = credentialOf(hub.state)
  await connect(hub.state, { address: hub.address(), credential: forged, tickets })
  const { servingKey, tickets: before } = hub.state
  const announced = withNext(hub.state, Date.now())
  const heard = credentialWith(announced, forged.pair)
  const after = withCompromised(announced, Date.now())
  hub.adopt(after)
  for (const more of [{}, { tickets }])
    await assert.rejects(
      connect(hub.state, { address: hub.address(), credential: heard, ...more }),
      /\(401\).*not signed by/,
    )
  await connect(after, { address: hub.address() })
  assert.equal(authoritiesOf(after).length, 1)
  assert.equal(after.bridge, undefined, 'nothing is vouched for by the old one')
  assert.equal(servingKey.equals(after.servingKey), false)
  assert.equal(before.key.equals(after.tickets.key), false)
})

test('each step of a rotation is refused out of its order, and adds one to the count of steps', () => {
  const state = makeState(Date.now())
  assert.throws(() => withSwitched(state, 0), /begin with "ake hub authority rotate"/)
  assert.throws(() => withoutOld(state), /nothing to retire/)
  const announced = withNext(state, 1_000)
  assert.throws(() => withNext(announced, 2_000), /announced already/)
  const switched = withSwitched(announced, 3_000)
  assert.deepEqual(
    authoritiesOf(announced).map(({ role }) => role),
    ['current', 'next'],
  )
  assert.deepEqual(
    authoritiesOf(switched).map(({ role }) => role),
    ['current', 'old'],
  )
  assert.deepEqual(
    authoritiesOf(switched).map(({ hash }) => hash),
    authoritiesOf(announced)
      .map(({ hash }) => hash)
      .reverse(),
  )
  const again = withSwitched(withNext(switched, 4_000), 5_000)
  assert.throws(() => withNext(again, 6_000), /"ake hub authority retire" first/)
  assert.deepEqual(
    [state, announced, switched, again, withoutOld(again)].map(({ generation }) => generation),
    [1, 2, 3, 5, 6],
  )
  assert.match(authoritiesOf(state)[0]!.hash, /^sha256:[0-9a-f]{64}$/)
})

test('an edge that was away while the authority was switched is let in by what vouches for the new one; after that is gone it is told', async () => {
  await using hub = await startHub()
  const before = credentialOf(hub.state)
  const switched = withSwitched(withNext(hub.state, Date.now()), Date.now())
  hub.adopt(switched)
  const away = await connect(hub.state, { address: hub.address(), credential: before })
  assert.equal(away.link.peer.resumed, false)
  assert.equal(hub.links.at(-1)?.link.peer.name, 'edge-1')
  hub.adopt(withoutOld(switched))
  await assert.rejects(
    connect(hub.state, { address: hub.address(), credential: before }),
    /its certificate is not signed by an authority of the credential/,
  )
  const stranger = withSwitched(withNext(makeState(Date.now()), Date.now()), Date.now())
  hub.adopt(stranger)
  await assert.rejects(connect(hub.state, { address: hub.address(), credential: before }), /not signed by an authority/)
})
