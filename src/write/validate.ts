/** Validation of a whole object before it is stored: metadata for every kind, the schema of custom resources. */

import type { JsonObject } from '../kube/json/json.ts'
import { text } from '../kube/json/json.ts'
import { type CheckOptions, type CheckResult, checkCustom } from '../kube/schema/check.ts'
import { invalidField } from '../kube/schema/errors.ts'
import { type FieldError, invalid } from '../kube/status.ts'
import { contentFaults, frozenFaults } from './contents.ts'
import type { RequestScope } from './engine.ts'
import { metaOf } from './meta.ts'
import { finalizerWarnings, metaFaults, metaUpdateFaults, standardFinalizerFaults } from './metavalidate.ts'
import { segmentFaults } from './names.ts'
import { nameRuleOf } from './rules.ts'

/** Throws 422 with everything that is wrong; answers warnings. */
export async function validateNew(
  scope: RequestScope,
  tree: JsonObject,
  more: readonly FieldError[],
): Promise<string[]> {
  const { resource } = scope
  const meta = metaOf(tree)
  const found = [...metaFaults(resource, meta, nameRuleOf(resource))]
  if (!resource.custom) found.push(...standardFinalizerFaults(meta))
  const custom = await customVerdict(scope, tree, { before: found })
  for (const error of [...custom.errors, ...more, ...contentFaults(scope, tree)]) found.push(error)
  const name = text(meta, 'name')
  if (found.length === 0)
    for (const fault of segmentFaults(name)) found.push(invalidField('metadata.name', name, fault))
  if (found.length > 0) throw invalid(resource.group, resource.kind, name, found)
  return [...(resource.custom ? finalizerWarnings(meta) : []), ...custom.warnings]
}

/** `status`: only that part of a custom resource was written. */
export async function validateUpdate(
  scope: RequestScope,
  tree: JsonObject,
  old: JsonObject,
  { status, more }: { readonly status: boolean; readonly more: readonly FieldError[] },
): Promise<string[]> {
  const { resource } = scope
  const meta = metaOf(tree)
  const oldMeta = metaOf(old)
  // The real server checks what holds for all kinds first, and then each kind its own, which repeats half of it.
  const found = [...metaFaults(resource, meta, 'segment'), ...metaUpdateFaults(meta, oldMeta)]
  found.push(...metaUpdateFaults(meta, oldMeta), ...frozenFaults(scope, tree, old))
  if (!resource.custom) {
    const standard = standardFinalizerFaults(meta)
    found.push(...standard, ...metaFaults(resource, meta, nameRuleOf(resource)), ...standard)
  }
  const custom = await customVerdict(scope, tree, { old, status, before: found })
  for (const error of [...custom.errors, ...more, ...contentFaults(scope, tree)]) found.push(error)
  if (found.length > 0) throw invalid(resource.group, resource.kind, text(meta, 'name'), found)
  return [...(resource.custom ? finalizerWarnings(meta, oldMeta) : []), ...custom.warnings]
}

async function customVerdict(
  { definition }: RequestScope,
  tree: JsonObject,
  options: Omit<CheckOptions, 'scale'>,
): Promise<CheckResult> {
  if (definition?.schema === undefined) return { errors: [], warnings: [] }
  const { schema, scale } = definition
  return checkCustom(tree, schema, scale === undefined ? options : { ...options, scale })
}
