/**
 * What a fresh server holds: the namespaces every Kubernetes has, and the service its clients look for; where it judges by roles,
 * those that kube-apiserver makes too.
 */

import type { OwnCatalog } from '../endpoint/owncatalog.ts'
import { builtinPolicy } from '../kube/builtin.ts'
import { type GroupVersionResource, objectKey, type Resource } from '../kube/resource.ts'
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

/** In whose name the server itself writes. */
export const asServer = { name: 'system:apiserver', uid: '', groups: ['system:masters'] }

type Creating = { create(request: WriteRequest): Promise<WriteResult> }

export async function bootstrap(writer: Creating, resources: OwnCatalog): Promise<void> {
  const core = { group: '', version: 'v1' }
  const of = resourceOf(resources, { ...core, resource: 'namespaces' })
  for (const name of namespaces) await ensure(writer, of, '', { metadata: { name } })
  await ensure(writer, resourceOf(resources, { ...core, resource: 'services' }), 'default', kubernetesService)
}

type Held = (interest: string, key: string) => boolean

/** Each of the default roles and bindings that is not held; one that was changed stays so. */
export async function bootstrapRoles(writer: Creating, resources: OwnCatalog, isHeld: Held): Promise<void> {
  const making = Object.entries(builtinPolicy()).flatMap(([plural, objects]) => {
    const resource = resourceOf(resources, { group: 'rbac.authorization.k8s.io', version: 'v1', resource: plural })
    return objects.flatMap((object) => {
      const { name, namespace = '' } = object.metadata
      const isThere = isHeld(resource.interest, objectKey(namespace, name))
      return isThere ? [] : [ensure(writer, resource, namespace, object)]
    })
  })
  await Promise.all(making)
}

export function resourceOf(resources: OwnCatalog, { group, version, resource }: GroupVersionResource): Resource {
  const found = resources.find(group, version, resource)?.resource
  if (found === undefined) throw new Error(`no resource ${resource} among the built-ins`)
  return found
}

async function ensure(writer: Creating, resource: Resource, namespace: string, object: unknown): Promise<void> {
  try {
    await writer.create({
      resource,
      subresource: '',
      namespace,
      name: '',
      query: () => undefined,
      body: Buffer.from(JSON.stringify(object)),
      format: 'json',
      caller: asServer,
      userAgent: 'kube-apiserver',
    })
  } catch (error) {
    // 409: it is there. 500: its stored bytes are damaged, which the log has said; what else there is can be served.
    if (!(error instanceof StatusError && (error.code === 409 || error.code === 500))) throw error
  }
}
