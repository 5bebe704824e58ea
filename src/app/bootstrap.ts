/** What a fresh server holds: the namespaces every Kubernetes has, and the service its clients look for. */

import type { OwnCatalog } from '../endpoint/owncatalog.ts'
import { StatusError } from '../kube/status.ts'
import type { WriteRequest, WriteResult } from '../write/write.ts'

const namespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system']

const kubernetesService = {
  metadata: { name: 'kubernetes', labels: { component: 'apiserver', provider: 'kubernetes' } },
  spec: {
    ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: 10005 }],
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1'],
    type: 'ClusterIP',
    sessionAffinity: 'None',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    internalTrafficPolicy: 'Cluster',
  },
}

type Creating = { create(request: WriteRequest): Promise<WriteResult> }

export async function bootstrap(writer: Creating, resources: OwnCatalog): Promise<void> {
  for (const name of namespaces) await ensure(writer, resources, 'namespaces', '', { metadata: { name } })
  await ensure(writer, resources, 'services', 'default', kubernetesService)
}

async function ensure(
  writer: Creating,
  resources: OwnCatalog,
  plural: string,
  namespace: string,
  object: unknown,
): Promise<void> {
  const resource = resources.find('', 'v1', plural)?.resource
  if (resource === undefined) throw new Error(`no resource ${plural} among the built-ins`)
  try {
    await writer.create({
      resource,
      subresource: '',
      namespace,
      name: '',
      query: () => undefined,
      body: Buffer.from(JSON.stringify(object)),
      format: 'json',
      caller: { name: 'system:apiserver', uid: '', groups: ['system:masters'] },
      userAgent: 'kube-apiserver',
    })
  } catch (error) {
    // 409: it is there. 500: its stored bytes are damaged, which the log has said; what else there is can be served.
    if (!(error instanceof StatusError && (error.code === 409 || error.code === 500))) throw error
  }
}
