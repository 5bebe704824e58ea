/** Without the cloud: what callers may do who never asked that before, beside what the API server itself says to them at that time. */
import type { Seat } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { shop } from '../hub/objects.ts'
import type { HubbedWorld } from '../hub/world.ts'
import { unbind } from './cast.ts'

const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const callers = ['keeper', 'bare', 'mary', 'uma', 'robin', 'idle', 'kube-proxy']

/** Of nothing that was asked while the line was there. */
const never: readonly object[] = [
  { verb: 'get', resource: 'configmaps', namespace: shop, name: 'never-asked' },
  { verb: 'watch', resource: 'secrets', namespace: shop },
  { verb: 'delete', resource: 'pods', namespace: shop, name: 'never-asked' },
  { verb: 'list', resource: 'services', namespace: 'default' },
  { verb: 'watch', resource: 'endpointslices', group: 'discovery.k8s.io' },
  { verb: 'impersonate', resource: 'users', name: 'bob' },
  { verb: 'deletecollection', resource: 'configmaps', namespace: shop },
  { verb: 'list', resource: 'nodes' },
]

type Said = { readonly status: { readonly allowed: boolean; readonly reason?: string } }

export async function checkOffline(world: HubbedWorld, findings: Findings, when: string): Promise<void> {
  for (const who of callers) {
    const [here, straight] = [world.at('edge-1', who), world.straight(who)]
    for (const attributes of never) {
      const [told, expected] = [await reviewed(here, attributes), await reviewed(straight, attributes)]
      findings.equal(told, expected, `${when}: ${who} ${JSON.stringify(attributes)}`)
    }
  }
}

async function reviewed(seat: Seat, resourceAttributes: object): Promise<string> {
  const { status, body } = await seat.ask(path, { method: 'POST', body: { spec: { resourceAttributes } } })
  if (status !== 201) return `${status} ${body}`
  const { allowed, reason = '' } = (JSON.parse(body) as Said).status
  return `${allowed} ${reason}`
}

/** Robin's only binding goes: the edge hears of it over its link, and what robin proved is fed no more. */
export async function checkWithdrawn(world: HubbedWorld, findings: Findings): Promise<void> {
  const robin = world.at('edge-1', 'robin')
  const list = `/api/v1/namespaces/${shop}/services?resourceVersion=0`
  findings.equal((await robin.ask(list)).status, 200, 'robin lists while bound')
  const startedMs = performance.now()
  await unbind(world.oracle, 'robin-reads')
  await world.until('robin is refused', async () => (await robin.ask(list)).status === 403)
  findings.note(
    `a caller with a certificate was refused ${Math.round(performance.now() - startedMs)} ms after its binding went`,
  )
}
