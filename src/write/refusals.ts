/** Refusals that only writing knows, in the words of kube-apiserver. */

import { groupResource, type Resource } from '../kube/resource.ts'
import { conflict, failure, invalid, type StatusError, unsupportedMediaType } from '../kube/status.ts'

export function methodNotServed(): StatusError {
  return failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
}

/** A 500 with nothing but a message: what the real server makes of an error it did not foresee. */
export function plainFailure(message: string): StatusError {
  return failure(500, '', message)
}

const modified = 'the object has been modified; please apply your changes to the latest version and try again'

export function modifiedConflict(resource: Resource, name: string): StatusError {
  return conflict(resource, name, modified)
}

/** Storage folders that are not called like their resource. */
const folders: Readonly<Record<string, string>> = {
  replicationcontrollers: 'controllers',
  endpoints: 'services/endpoints',
  nodes: 'minions',
  services: 'services/specs',
  'ingresses.networking.k8s.io': 'ingress',
}

/** The uid a PUT names is not the object's: the text quotes the real server's storage. */
export function uidConflict(resource: Resource, key: string, name: string, wanted: string, found: string): StatusError {
  const own = resource.group.includes('.') && (resource.custom || resource.group === 'apiextensions.k8s.io')
  const folder =
    folders[groupResource(resource)] ?? (own ? `${resource.group}/${resource.resource}` : resource.resource)
  return conflict(
    resource,
    name,
    `StorageError: invalid object, Code: 4, Key: /registry/${folder}/${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found}`,
  )
}

export function versionRequired(resource: Resource, name: string): StatusError {
  const text = 'Invalid value: 0: must be specified for an update'
  const cause = { field: 'metadata.resourceVersion', reason: 'FieldValueInvalid', text } as const
  return invalid(resource.group, resource.resource, name, [cause])
}

/** 415 for a strategic patch of a custom resource. */
export function noStrategicPatch(): StatusError {
  return unsupportedMediaType([
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/apply-patch+yaml',
  ])
}

/** The patched object cannot be decoded: the real server quotes what it tried to decode. */
export function unusablePatch(shown: string, why: string): StatusError {
  const text = `Invalid value: ${shown}: ${why}`
  return invalid('', '', '', [{ field: 'patch', reason: 'FieldValueInvalid', text }])
}
