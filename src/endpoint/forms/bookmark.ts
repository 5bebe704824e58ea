/**
 * The frame that tells a watcher how far it has come. Its object is one of the resource's kind with nothing but a version:
 * typed clients look at the kind. Go prints such an object with the members that it never leaves out, each at its zero.
 */
import { apiVersion, type Resource } from '../../kube/resource.ts'

const initialEventsEnd = '"k8s.io/initial-events-end":"true"'

export function printBookmark(resource: Resource, version: number, ending: boolean): string {
  return `{"type":"BOOKMARK","object":${bookmarkObject(resource, version, ending)}}\n`
}

/** That of a form that belongs to no resource. */
export function bookmarkMetadata(version: number, ending: boolean): string {
  const annotations = ending ? `,"annotations":{${initialEventsEnd}}` : ''
  return `{"resourceVersion":"${version}"${annotations}}`
}

export function bookmarkObject(resource: Resource, version: number, ending: boolean): string {
  const type = apiVersion(resource)
  const at = `"resourceVersion":"${version}"`
  if (resource.custom) {
    // A custom resource is a map in Go, and its keys come sorted.
    const metadata = ending ? `"annotations":{${initialEventsEnd}},${at}` : at
    return `{"apiVersion":"${type}","kind":"${resource.kind}","metadata":{${metadata}}}`
  }
  const kind = `${type}/${resource.kind}`
  const annotations = [...(annotated.get(kind) ?? []), ...(ending ? [initialEventsEnd] : [])].join(',')
  const metadata = annotations === '' ? at : `${at},"annotations":{${annotations}}`
  const rest = bodies.get(kind)
  const body = rest === undefined ? '' : `,${rest}`
  return `{"kind":"${resource.kind}","apiVersion":"${type}","metadata":{${metadata}}${body}}`
}

/** What is kept inside the object there, and is an annotation outside. */
const annotated: ReadonlyMap<string, readonly string[]> = new Map([
  ['apps/v1/DaemonSet', ['"deprecated.daemonset.template.generation":"0"']],
])

/** What stands behind the metadata of an empty object. A pod template is empty in the same way everywhere. */
const template = '"template":{"metadata":{},"spec":{"containers":null}}'
const bodies: ReadonlyMap<string, string> = new Map([
  [
    'v1/Event',
    '"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""',
  ],
  ['v1/LimitRange', '"spec":{"limits":null}'],
  ['v1/Namespace', '"spec":{},"status":{}'],
  [
    'v1/Node',
    '"spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}',
  ],
  ['v1/PersistentVolumeClaim', '"spec":{"resources":{}},"status":{}'],
  ['v1/PersistentVolume', '"spec":{},"status":{}'],
  ['v1/Pod', '"spec":{"containers":null},"status":{}'],
  ['v1/PodTemplate', `${template}`],
  ['v1/ReplicationController', '"spec":{},"status":{"replicas":0}'],
  ['v1/ResourceQuota', '"spec":{},"status":{}'],
  ['v1/Service', '"spec":{},"status":{"loadBalancer":{}}'],
  ['apiregistration.k8s.io/v1/APIService', '"spec":{"groupPriorityMinimum":0,"versionPriority":0},"status":{}'],
  ['apps/v1/ControllerRevision', '"data":null,"revision":0'],
  [
    'apps/v1/DaemonSet',
    `"spec":{"selector":null,${template},"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}`,
  ],
  ['apps/v1/Deployment', `"spec":{"replicas":0,"selector":null,${template},"strategy":{}},"status":{}`],
  ['apps/v1/ReplicaSet', `"spec":{"replicas":0,"selector":null,${template}},"status":{"replicas":0}`],
  [
    'apps/v1/StatefulSet',
    `"spec":{"replicas":0,"selector":null,${template},"serviceName":"","updateStrategy":{}},"status":{"replicas":0,"availableReplicas":0}`,
  ],
  [
    'events.k8s.io/v1/Event',
    '"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null',
  ],
  [
    'autoscaling/v2/HorizontalPodAutoscaler',
    '"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"status":{"desiredReplicas":0,"currentMetrics":null}',
  ],
  [
    'autoscaling/v1/HorizontalPodAutoscaler',
    '"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"status":{"currentReplicas":0,"desiredReplicas":0}',
  ],
  ['batch/v1/CronJob', `"spec":{"schedule":"","jobTemplate":{"metadata":{},"spec":{${template}}}},"status":{}`],
  ['batch/v1/Job', `"spec":{${template}},"status":{}`],
  ['certificates.k8s.io/v1/CertificateSigningRequest', '"spec":{"request":null,"signerName":""},"status":{}'],
  ['networking.k8s.io/v1/IngressClass', '"spec":{}'],
  ['networking.k8s.io/v1/Ingress', '"spec":{},"status":{"loadBalancer":{}}'],
  ['networking.k8s.io/v1/IPAddress', '"spec":{}'],
  ['networking.k8s.io/v1/NetworkPolicy', '"spec":{"podSelector":{}}'],
  ['networking.k8s.io/v1/ServiceCIDR', '"spec":{},"status":{}'],
  [
    'policy/v1/PodDisruptionBudget',
    '"spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}',
  ],
  ['rbac.authorization.k8s.io/v1/ClusterRoleBinding', '"roleRef":{"apiGroup":"","kind":"","name":""}'],
  ['rbac.authorization.k8s.io/v1/ClusterRole', '"rules":null'],
  ['rbac.authorization.k8s.io/v1/RoleBinding', '"roleRef":{"apiGroup":"","kind":"","name":""}'],
  ['rbac.authorization.k8s.io/v1/Role', '"rules":null'],
  ['storage.k8s.io/v1/CSIDriver', '"spec":{}'],
  ['storage.k8s.io/v1/CSINode', '"spec":{"drivers":null}'],
  ['storage.k8s.io/v1/CSIStorageCapacity', '"storageClassName":""'],
  ['storage.k8s.io/v1/StorageClass', '"provisioner":""'],
  [
    'storage.k8s.io/v1/VolumeAttachment',
    '"spec":{"attacher":"","source":{},"nodeName":""},"status":{"attached":false}',
  ],
  ['storage.k8s.io/v1/VolumeAttributesClass', '"driverName":""'],
  ['admissionregistration.k8s.io/v1/MutatingAdmissionPolicy', '"spec":{}'],
  ['admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding', '"spec":{}'],
  ['admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy', '"spec":{},"status":{}'],
  ['admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding', '"spec":{}'],
  [
    'apiextensions.k8s.io/v1/CustomResourceDefinition',
    '"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}',
  ],
  ['scheduling.k8s.io/v1/PriorityClass', '"value":0'],
  ['coordination.k8s.io/v1/Lease', '"spec":{}'],
  ['node.k8s.io/v1/RuntimeClass', '"handler":""'],
  ['discovery.k8s.io/v1/EndpointSlice', '"addressType":"","endpoints":null,"ports":null'],
  ['resource.k8s.io/v1/DeviceClass', '"spec":{}'],
  ['resource.k8s.io/v1/ResourceClaim', '"spec":{"devices":{"requests":null}},"status":{}'],
  ['resource.k8s.io/v1/ResourceClaimTemplate', '"spec":{"metadata":{},"spec":{"devices":{"requests":null}}}'],
  ['resource.k8s.io/v1/ResourceSlice', '"spec":{"driver":"","pool":{"name":"","generation":0,"resourceSliceCount":0}}'],
  [
    'flowcontrol.apiserver.k8s.io/v1/FlowSchema',
    '"spec":{"priorityLevelConfiguration":{"name":""},"matchingPrecedence":0},"status":{}',
  ],
  ['flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration', '"spec":{"type":""},"status":{}'],
])
