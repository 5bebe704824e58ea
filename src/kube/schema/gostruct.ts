/**
 * How Go names the types behind OpenAPI components: decode errors of built-in kinds carry these names. What the
 * components do not tell (embedded structs, named strings) is listed here for the kinds people write by hand.
 */

import type { Schema } from './schema.ts'

export type Components = Readonly<Record<string, Schema | Readonly<Record<string, unknown>>>>

const PREFIX = '#/components/schemas/'

/** The component a property refers to, whether directly or wrapped in `allOf` beside a default. */
export function referenceOf(schema: Schema): string | undefined {
  const reference = schema.$ref ?? schema.allOf?.[0]?.$ref
  return reference?.startsWith(PREFIX) ? reference.slice(PREFIX.length) : undefined
}

/** `Pod` of `io.k8s.api.core.v1.Pod`. */
export function structName(component: string): string {
  return component.slice(component.lastIndexOf('.') + 1)
}

/** `v1.Pod`: the struct with its package. */
function qualifiedStruct(component: string): string {
  return component.split('.').slice(-2).join('.')
}

const NAMED: Readonly<Record<string, string>> = {
  'Container.imagePullPolicy': 'v1.PullPolicy',
  'Container.terminationMessagePolicy': 'v1.TerminationMessagePolicy',
  'ContainerPort.protocol': 'v1.Protocol',
  'ObjectMeta.uid': 'types.UID',
  'PodSpec.dnsPolicy': 'v1.DNSPolicy',
  'PodSpec.restartPolicy': 'v1.RestartPolicy',
  'ResourceRequirements.limits': 'v1.ResourceList',
  'ResourceRequirements.requests': 'v1.ResourceList',
  'Secret.type': 'v1.SecretType',
  'ServicePort.protocol': 'v1.Protocol',
  'ServiceSpec.sessionAffinity': 'v1.ServiceAffinity',
  'ServiceSpec.type': 'v1.ServiceType',
  'Toleration.effect': 'v1.TaintEffect',
  'Toleration.operator': 'v1.TolerationOperator',
}

/** The Go type of a field, as `cannot unmarshal … of type …` prints it; pointers print as what they point to. */
export function goTypeName(schema: Schema, struct: string, field: string): string {
  return NAMED[`${struct}.${field}`] ?? bareType(schema)
}

function bareType(schema: Schema): string {
  const reference = referenceOf(schema)
  if (reference !== undefined) return qualifiedStruct(reference)
  switch (schema.type) {
    case 'boolean':
      return 'bool'
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64'
    case 'number':
      return schema.format === 'float' ? 'float32' : 'float64'
    case 'array':
      return `[]${schema.items === undefined ? 'interface {}' : bareType(schema.items)}`
    case 'object': {
      const values = schema.additionalProperties
      return typeof values === 'object' ? `map[string]${bareType(values)}` : 'map[string]interface {}'
    }
    default:
      return schema.format === 'byte' ? '[]uint8' : 'string'
  }
}

const LOCAL_REFERENCE = new Set([
  'ConfigMapEnvSource',
  'ConfigMapKeySelector',
  'ConfigMapProjection',
  'ConfigMapVolumeSource',
  'SecretEnvSource',
  'SecretKeySelector',
  'SecretProjection',
])

const HANDLERS = new Set(['exec', 'grpc', 'httpGet', 'tcpSocket'])

/** The embedded struct a field really sits in; it shows up in the path of an error. */
export function embeddedIn(struct: string, field: string): string | undefined {
  if (struct === 'Volume' && field !== 'name') return 'VolumeSource'
  if (struct === 'Probe' && HANDLERS.has(field)) return 'ProbeHandler'
  if (struct === 'EphemeralContainer' && field !== 'targetContainerName') return 'EphemeralContainerCommon'
  if (LOCAL_REFERENCE.has(struct) && field === 'name') return 'LocalObjectReference'
  return undefined
}
