/** An edge that lies about its callers: it has a link of its own, and shows what it likes over it. */
import { X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openLinkedLine } from '../../src/app/linkedline.ts'
import { createLog } from '../../src/base/log.ts'
import { type NamedIdentity, Unspoken, type UpstreamRequest } from '../../src/upstream/upstream.ts'
import type { Person } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { shop } from '../hub/objects.ts'
import type { HubbedWorld } from '../hub/world.ts'
import { issueEdge } from '../hubs.ts'
import type { Cast } from './cast.ts'

const path = `/api/v1/namespaces/${shop}/secrets`

/** As an edge that was taken would ask: past everything that an edge of ours looks at. */
export async function checkLies(
  world: HubbedWorld,
  findings: Findings,
  { cast, state }: { cast: Cast; state: string },
): Promise<void> {
  const { dir } = world.context
  const hub = `wss://127.0.0.1:${world.hubs[0].port}`
  const log = createLog({ level: 'error', write: () => undefined })
  const gate = { admit: () => Promise.resolve(undefined), look: () => Promise.resolve(undefined) }
  await mkdir(join(dir, 'lies'), { recursive: true })
  for (const name of ['edge-1', 'edge-2']) {
    const credential = await issueEdge(join(dir, 'lies'), name, { state, kubeconfig: world.oracle.kubeconfig })
    const line = await openLinkedLine({ hub: [hub], credential, serving: undefined }, { gate, cluster: () => '', log })
    const ending = new AbortController()
    const running = line.upstream.run(ending.signal)
    await world.until(`${name} lies over a link`, async () => line.upstream.reachability.state === 'reachable')
    const ask = async (who: string, more: Partial<UpstreamRequest> = {}) => {
      const identity = identityOf(cast.get(who) as Person, who)
      try {
        const answer = await line.upstream.ask({ method: 'GET', path, identity, passedOn: true, ...more })
        for await (const _ of answer.body);
        return String(answer.status)
      } catch (error) {
        return error instanceof Unspoken ? `unspoken: ${error.message}` : `failed: ${String(error)}`
      }
    }
    const isPoliced = name === 'edge-1'
    findings.equal(
      await ask('uma'),
      isPoliced
        ? '200'
        : 'unspoken: its hub does not let node "edge-2" speak for it (no policy lets this edge speak for it)',
      `${name} speaks for uma`,
    )
    for (const who of ['foreign', 'expired'])
      findings.equal(await ask(who), '401', `${name} shows a certificate that is ${who}`)
    findings.equal(
      await ask('master'),
      'unspoken: its hub speaks for no member of system:masters',
      `${name} speaks for a master`,
    )
    const other = `unspoken: its hub does not let node "${name}" speak for it (no policy lets this edge speak for it)`
    findings.equal(await ask('stranger'), other, `${name} speaks for whom no policy names`)
    for (const header of ['impersonate-user', 'Impersonate-User', 'IMPERSONATE-USER'])
      findings.equal(
        await ask('idle', { headers: { [header]: 'admin' } }),
        isPoliced ? '403' : other,
        `${name}: ${header}`,
      )
    const node = await line.upstream.ask({
      method: 'GET',
      path,
      identity: { kind: 'edge' },
      headers: { 'Impersonate-User': 'admin' },
    })
    findings.equal(node.status, 403, `${name}: its node as another`)
    ending.abort()
    await running
  }
  const told = (await Promise.all(['hub-1', 'hub-2'].map((name) => readFile(join(dir, `${name}.log`), 'utf8')))).join(
    '',
  )
  for (const why of [
    'has expired',
    'no authority by which the cluster knows clients',
    'no member of system:masters',
    'no policy lets this edge speak for it',
  ])
    findings.check(
      told.split('\n').some((line) => line.includes('hub.unspoken') && line.includes(why)),
      `the hub has logged: ${why}`,
    )
}

/** Whatever it says of the caller, the certificate counts. */
function identityOf({ cert = '' }: Person, who: string): NamedIdentity {
  const chain = new X509Certificate(cert).raw.toString('base64url')
  return { kind: 'named', caller: { name: who, uid: '', groups: ['system:masters'] }, chain }
}
