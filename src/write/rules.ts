/**
 * How one resource is written: the generated rules of built-ins (kube/builtin), the same in the same form for custom
 * resources, and what a name must look like.
 */

import { builtinFacts, type WriteRules } from '../kube/builtin.ts'
import { groupResource, type Resource } from '../kube/resource.ts'
import type { Definition } from '../kube/schema/catalog.ts'
import type { NameRule } from './names.ts'
import { methodNotServed } from './refusals.ts'

let builtins: ReadonlyMap<string, WriteRules> | undefined

/** Throws 405 for resources that store nothing. */
export function rulesOf(resource: Resource, definition: Definition | undefined): WriteRules {
  if (resource.custom) return definition?.status === true ? customWithStatus : custom
  builtins ??= new Map(
    builtinFacts().resources.flatMap((one) => (one.writes === undefined ? [] : [[identity(one), one.writes]])),
  )
  const rules = builtins.get(identity(resource))
  if (rules === undefined) throw methodNotServed()
  return rules
}

function identity({ group, version, resource }: Resource): string {
  return `${group}/${version}/${resource}`
}

/** An empty path in `raisedBy` stands for everything but metadata. */
export const everything = ''

const custom: WriteRules = {
  storageVersion: '',
  unconditionalUpdate: false,
  createOnUpdate: false,
  generation: { created: true, raisedBy: [everything] },
  reset: { create: [], update: [] },
  deleteAnswers: 'status',
  propagation: 'Background',
}

const customWithStatus: WriteRules = { ...custom, reset: { create: ['status'], update: ['status'] } }

const nameRules: Readonly<Record<string, NameRule>> = {
  namespaces: 'label',
  services: 'label',
  'statefulsets.apps': 'label',
  'roles.rbac.authorization.k8s.io': 'segment',
  'clusterroles.rbac.authorization.k8s.io': 'segment',
  'rolebindings.rbac.authorization.k8s.io': 'segment',
  'clusterrolebindings.rbac.authorization.k8s.io': 'segment',
  'ipaddresses.networking.k8s.io': 'segment',
  'apiservices.apiregistration.k8s.io': 'segment',
  // Its own rules compare the name with the plural and the group.
  'customresourcedefinitions.apiextensions.k8s.io': 'segment',
}

export function nameRuleOf(resource: Resource): NameRule {
  return (resource.custom ? undefined : nameRules[groupResource(resource)]) ?? 'subdomain'
}
