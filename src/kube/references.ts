/**
 * What objects name that a node reads before it starts a pod: a pod its account, Secrets, ConfigMaps, claims of volumes and of
 * devices, a claim its volume, a volume the Secrets of its driver and its attachment to the node. What the API server's
 * authorizer of nodes lets a kubelet read is the measure. Pure.
 */
import { hash } from 'node:crypto'
import { field, isObject, type Json, text } from './json/json.ts'

const groups = {
  secrets: '',
  configmaps: '',
  serviceaccounts: '',
  persistentvolumeclaims: '',
  persistentvolumes: '',
  resourceclaims: 'resource.k8s.io',
  volumeattachments: 'storage.k8s.io',
} as const

export type Reference = {
  readonly group: string
  readonly resource: keyof typeof groups
  /** '' for what is in none. */
  readonly namespace: string
  readonly name: string
  /** Of an attachment: whose volume it is. */
  readonly driver?: string
}

/** Of a pod, a claim or a volume on this node, each once; nothing of anything else, nor of a pod that is not started again. */
export function referencesOf(resource: string, object: Json, node: string): readonly Reference[] {
  if (resource === 'pods') return isOver(object) ? [] : referencesOfPod(object)
  return gathered((add) => {
    if (resource === 'persistentvolumeclaims') add('persistentvolumes', '', text(object, 'spec', 'volumeName'))
    else if (resource === 'persistentvolumes') addOfVolume(object, add, node)
  })
}

/** Whether it runs or has run to its end: its node may read what it names for as long as it is there. */
export function referencesOfPod(pod: Json): readonly Reference[] {
  return gathered((add) => addOfPod(pod, add))
}

function gathered(fill: (add: Add) => void): readonly Reference[] {
  const found = new Map<string, Reference>()
  fill((of, namespace, name, more) => {
    if (name !== '')
      found.set(`${of} ${namespace} ${name}`, { group: groups[of], resource: of, namespace, name, ...more })
  })
  return [...found.values()]
}

/** Whether the kubelet needs a token of the pod's account before it can start it. */
export function mountsToken(pod: Json): boolean {
  return (
    !isOver(pod) &&
    each(pod, 'spec', 'volumes').some((volume) =>
      each(volume, 'projected', 'sources').some((source) => isObject(field(source, 'serviceAccountToken'))),
    )
  )
}

/** Whether volumes of this CSIDriver are mounted without being attached first: then there is no attachment. */
export function attachesNothing(driver: Json): boolean {
  return field(driver, 'spec', 'attachRequired') === false
}

/** One that has run to its end is not started again. */
function isOver(pod: Json): boolean {
  return ['Succeeded', 'Failed'].includes(text(pod, 'status', 'phase'))
}

type Add = (resource: Reference['resource'], namespace: string, name: string, more?: Pick<Reference, 'driver'>) => void

function addOfPod(pod: Json, add: Add): void {
  const spec = field(pod, 'spec')
  const namespace = text(pod, 'metadata', 'namespace')
  const inPod = (of: Reference['resource'], name: string) => add(of, namespace, name)
  inPod('serviceaccounts', text(spec, 'serviceAccountName'))
  for (const secret of each(spec, 'imagePullSecrets')) inPod('secrets', text(secret, 'name'))
  // A claim that is made from a template, or for an extended resource, is named in the status.
  for (const claim of [...each(spec, 'resourceClaims'), ...each(pod, 'status', 'resourceClaimStatuses')])
    inPod('resourceclaims', text(claim, 'resourceClaimName'))
  inPod('resourceclaims', text(pod, 'status', 'extendedResourceClaimStatus', 'resourceClaimName'))
  for (const kind of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const container of each(spec, kind)) {
      for (const one of each(container, 'env')) {
        inPod('secrets', text(one, 'valueFrom', 'secretKeyRef', 'name'))
        inPod('configmaps', text(one, 'valueFrom', 'configMapKeyRef', 'name'))
      }
      for (const one of each(container, 'envFrom')) {
        inPod('secrets', text(one, 'secretRef', 'name'))
        inPod('configmaps', text(one, 'configMapRef', 'name'))
      }
    }
  }
  for (const volume of each(spec, 'volumes')) {
    inPod('configmaps', text(volume, 'configMap', 'name'))
    inPod('persistentvolumeclaims', text(volume, 'persistentVolumeClaim', 'claimName'))
    // The claim of an ephemeral volume is named after its pod.
    if (isObject(field(volume, 'ephemeral')))
      inPod('persistentvolumeclaims', `${text(pod, 'metadata', 'name')}-${text(volume, 'name')}`)
    for (const source of each(volume, 'projected', 'sources')) {
      inPod('secrets', text(source, 'secret', 'name'))
      inPod('configmaps', text(source, 'configMap', 'name'))
    }
    for (const source of sourcesOf(volume)) {
      inPod('secrets', text(source, 'secretName'))
      for (const use of ['secretRef', 'nodePublishSecretRef']) inPod('secrets', text(source, use, 'name'))
    }
  }
}

/** Those that the node reads: not those of the driver's controller. */
const uses = ['secretRef', 'nodeStageSecretRef', 'nodePublishSecretRef', 'nodeExpandSecretRef']

function addOfVolume(volume: Json, add: Add, node: string): void {
  const spec = field(volume, 'spec')
  const [driver, handle] = [text(spec, 'csi', 'driver'), text(spec, 'csi', 'volumeHandle')]
  // The kubelet and the cluster's controller find it by this name.
  if (driver !== '') add('volumeattachments', '', `csi-${hash('sha256', `${handle}${driver}${node}`)}`, { driver })
  const claimed = text(spec, 'claimRef', 'namespace')
  for (const source of sourcesOf(spec)) {
    add('secrets', text(source, 'secretNamespace') || claimed, text(source, 'secretName'))
    for (const use of uses) add('secrets', text(source, use, 'namespace') || claimed, text(source, use, 'name'))
  }
}

/** Where a volume comes from is one of its members, named after the kind of it. */
function sourcesOf(volume: Json | undefined): Json[] {
  return isObject(volume) ? [...volume.values()].filter(isObject) : []
}

function each(value: Json | undefined, ...path: string[]): readonly Json[] {
  const found = field(value, ...path)
  return Array.isArray(found) ? found : []
}
