/**
 * Fields that a write leaves as they are, whatever it says about them: a write of the object ignores its status, one of
 * the status most of the rest. What is ignored is not owned either.
 */

import type { WriteRules } from '../kube/builtin.ts'
import { isResource } from '../kube/resource.ts'
import { FieldSet } from './apply/fieldset.ts'
import { pathOf } from './apply/pathelement.ts'
import type { RequestScope } from './engine.ts'
import { namespaces } from './engine.ts'

type FieldSetFilter = (fields: FieldSet) => FieldSet

const known = new WeakMap<WriteRules, Map<string, FieldSetFilter | undefined>>()

/** What remains of the fields that a write through this subresource names; undefined: all. */
export function ignoringFilter(scope: RequestScope, subresource: string): FieldSetFilter | undefined {
  let filters = known.get(scope.rules)
  if (filters === undefined) {
    filters = new Map()
    known.set(scope.rules, filters)
  }
  if (!filters.has(subresource)) filters.set(subresource, filterFor(scope, subresource))
  return filters.get(subresource)
}

function filterFor({ resource, rules }: RequestScope, subresource: string): FieldSetFilter | undefined {
  const paths = ignoredPaths(resource, rules, subresource)
  if (paths.length === 0) return undefined
  const ignored = FieldSet.of(...paths.map((path) => pathOf(...path.split('.'))))
  return (fields) => fields.without(ignored)
}

const signingRequests = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests' }

/** Mostly what is reset; where the real server's two lists differ, the one for ownership. */
function ignoredPaths(resource: RequestScope['resource'], rules: WriteRules, subresource: string) {
  if (resource.custom && subresource === 'status') return ['metadata', 'spec']
  if (isResource(resource, namespaces) && subresource === '') return ['status']
  if (isResource(resource, signingRequests) && subresource === 'status') {
    return ['spec', 'status.conditions']
  }
  return rules.reset[subresource === '' ? 'update' : subresource] ?? []
}
