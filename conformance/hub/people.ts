/** Who is neither a node nor has a token: a hub that does not trust its edges passes nothing on in the names of known ones, and says so. */
import type { Asked } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { messageOf } from './kubelet.ts'
import { shop, slices } from './objects.ts'
import type { HubbedWorld } from './world.ts'

const untrusted =
  'the administrator of an edge can only read here: its hub does not trust edges with its own credential'
const alone =
  'nothing goes up in the name of "jane", whom this edge knows by its certificate alone: its hub speaks for no member of system:masters, ask with a token, or ask the API server itself'
const making: Asked = { method: 'POST', body: { metadata: { name: 'never' } } }
const configMaps = `/api/v1/namespaces/${shop}/configmaps`

export async function checkPeople(world: HubbedWorld, findings: Findings): Promise<void> {
  const { cert, key } = await world.oracle.userCredential('jane', ['system:masters'])
  world.know('jane', { cert, key })
  world.know('anonymous', {})
  world.know('forger', { token: 'not-a-token' })
  const cases: readonly (readonly [who: string, path: string, asked: Asked, expected: readonly [number, string?]])[] = [
    ['administrator', slices, {}, [200]],
    ['administrator', `${slices}?resourceVersion=0`, {}, [200]],
    ['administrator', '/api/v1/nodes/edge-1', {}, [200]],
    ['administrator', `/api/v1/namespaces/${shop}/secrets/of-edge-2`, {}, [403, untrusted]],
    ['administrator', '/api/v1/secrets', {}, [403, untrusted]],
    ['administrator', '/api/v1/persistentvolumes', {}, [403, untrusted]],
    ['administrator', configMaps, making, [403, untrusted]],
    ['administrator', `/api/v1/namespaces/${shop}/pods/pod-on-edge-1/log`, {}, [403, untrusted]],
    ['administrator', '/api/v1/nodes/edge-1', { headers: { 'impersonate-user': 'admin' } }, [403, untrusted]],
    ['anonymous', slices, {}, [403]],
    ['anonymous', `${slices}?resourceVersion=0`, {}, [403]],
    ['anonymous', `/api/v1/namespaces/${shop}/secrets/of-edge-1`, {}, [403]],
    ['anonymous', configMaps, making, [403]],
    // What it may read by roles it reads of the copy; nothing goes up in a name that its hub cannot prove.
    ['jane', `${slices}?resourceVersion=0`, {}, [200]],
    ['jane', '/api/v1/persistentvolumes', {}, [403, `persistentvolumes is forbidden: ${alone}`]],
    ['jane', configMaps, making, [403, `configmaps is forbidden: ${alone}`]],
    ['forger', slices, {}, [401, 'Unauthorized']],
    ['forger', configMaps, making, [401, 'Unauthorized']],
  ]
  for (const [who, path, asked, [status, sentence]] of cases) {
    const told = await world.at('edge-1', who).ask(path, asked)
    const what = `${who} ${asked.method ?? 'GET'} ${path}`
    findings.equal(told.status, status, `${what} (${told.body.slice(0, 300)})`)
    if (sentence !== undefined) findings.equal(messageOf(told), sentence, `${what}: what it is told`)
  }
}
