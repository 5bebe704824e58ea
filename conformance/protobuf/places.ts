/** Every resource that a real kube-apiserver stores and serves in protobuf, and the key of its objects in etcd. */
import { type Message, messageOf } from '../../src/kube/protobuf/protobuf.ts'
import { ask, type Oracle } from '../oracle.ts'

export type Place = {
  readonly apiVersion: string
  readonly kind: string
  readonly resource: string
  readonly namespaced: boolean
  readonly message: Message
  readonly listMessage: Message
  /** The path of its collection. */
  path(namespace: string): string
  key(namespace: string, name: string): string
}

type Discovered = {
  readonly resources: readonly {
    readonly name: string
    readonly kind: string
    readonly namespaced: boolean
    readonly verbs: readonly string[]
  }[]
}

/** Where the key is not the resource's name. */
const keys: Readonly<Record<string, string>> = {
  '/nodes': 'minions',
  '/services': 'services/specs',
  '/endpoints': 'services/endpoints',
  '/replicationcontrollers': 'controllers',
  'networking.k8s.io/ingresses': 'ingress',
  'events.k8s.io/events': 'events',
  'apiextensions.k8s.io/customresourcedefinitions': 'apiextensions.k8s.io/customresourcedefinitions',
  'apiregistration.k8s.io/apiservices': 'apiregistration.k8s.io/apiservices',
}

export async function placesOf(oracle: Oracle): Promise<Place[]> {
  const { groups } = JSON.parse((await ask(oracle, '/apis')).body) as {
    groups: { versions: { groupVersion: string }[] }[]
  }
  const versions = ['v1', ...groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion))]
  const places: Place[] = []
  for (const apiVersion of versions) {
    const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const { resources } = JSON.parse((await ask(oracle, root)).body) as Discovered
    for (const { name, kind, namespaced, verbs } of resources) {
      const isStored = !name.includes('/') && verbs.includes('create') && verbs.includes('watch')
      const message = messageOf(apiVersion, kind)
      const listMessage = messageOf(apiVersion, `${kind}List`)
      if (!isStored || message === undefined || listMessage === undefined) continue
      const group = apiVersion === 'v1' ? '' : (apiVersion.split('/')[0] as string)
      const prefix = keys[`${group}/${name}`] ?? name
      places.push({
        apiVersion,
        kind,
        resource: name,
        namespaced,
        message,
        listMessage,
        path: (namespace) => (namespaced ? `${root}/namespaces/${namespace}/${name}` : `${root}/${name}`),
        key: (namespace, one) => `/registry/${prefix}/${namespaced ? `${namespace}/` : ''}${one}`,
      })
    }
  }
  return places
}
