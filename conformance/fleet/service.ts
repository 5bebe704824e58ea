/** The Service of several hubs, by which they find each other. */
import type { Hub } from '../hubs.ts'
import { ask, type Oracle } from '../oracle.ts'

export const serviceWords: readonly string[] = ['--service', 'ake-system/ake-hub']

/** As kube-controller-manager would, but for loopback: the API server takes no such address, so they are put into its store. */
export async function publishHubs(oracle: Oracle, hubs: readonly Pick<Hub, 'port'>[]): Promise<void> {
  for (const [at, { port }] of hubs.entries()) {
    const name = `ake-hub-${at + 1}`
    const slice = {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
      metadata: { name, namespace: 'ake-system', uid: name, labels: { 'kubernetes.io/service-name': 'ake-hub' } },
      endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: 'link', port, protocol: 'TCP' }],
    }
    await oracle.plant(`/registry/endpointslices/ake-system/${name}`, Buffer.from(JSON.stringify(slice)))
  }
  const { body } = await ask(oracle, '/apis/discovery.k8s.io/v1/namespaces/ake-system/endpointslices')
  if (!body.includes(`"ake-hub-${hubs.length}"`)) throw new Error(`the slices cannot be read: ${body.slice(0, 300)}`)
}
