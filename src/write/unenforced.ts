/**
 * Objects by which kube-apiserver judges or redirects other requests, and which are only stored here: the client that writes one
 * is told, so that no operator relies on a guard that never comes. Pure.
 */
import { equalJson, field, isObject, type Json, type JsonObject } from '../kube/json/json.ts'
import { type GroupResource, groupResource, isResource } from '../kube/resource.ts'
import { namespaces } from './engine.ts'

const webhooks = 'admission webhooks are only stored by this server: they are never called'
const policies = 'admission policies are only stored by this server: they are never evaluated'
const services = 'API services are only stored by this server: it passes no request on to the service named here'
const levels = 'pod security levels are only stored by this server: pods are not checked against them'

/** By group resource. */
const always: Readonly<Record<string, string>> = {
  'validatingwebhookconfigurations.admissionregistration.k8s.io': webhooks,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': webhooks,
  'validatingadmissionpolicies.admissionregistration.k8s.io': policies,
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': policies,
  'mutatingadmissionpolicies.admissionregistration.k8s.io': policies,
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': policies,
  resourcequotas: 'resource quotas are only stored by this server: they limit nothing',
  limitranges: 'limit ranges are only stored by this server: they limit and default nothing',
}

const apiServices = { group: 'apiregistration.k8s.io', resource: 'apiservices' }
const levelLabels = ['enforce', 'audit', 'warn'].map((mode) => `pod-security.kubernetes.io/${mode}`)

/** What a writer of this object is warned of; `old` is what it replaces. */
export function unenforcedWarnings(resource: GroupResource, tree: JsonObject, old: JsonObject | undefined): string[] {
  const told = always[groupResource(resource)]
  if (told !== undefined) return [told]
  if (isResource(resource, apiServices)) return isObject(field(tree, 'spec', 'service')) ? [services] : []
  // A namespace is written for many reasons: only a client that sets a level is told.
  const sets = (label: string) => {
    const level = labelOf(tree, label)
    return level !== undefined && !(old !== undefined && equalJson(level, labelOf(old, label) ?? null))
  }
  return isResource(resource, namespaces) && levelLabels.some(sets) ? [levels] : []
}

function labelOf(tree: JsonObject, label: string): Json | undefined {
  return field(tree, 'metadata', 'labels', label)
}
