/** Deletecollection: a list, then one delete after the other. Like the real one it is not atomic. */

import { selectableFields } from '../kube/fields.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { parseLabelSelector } from '../kube/selector.ts'
import { StatusError } from '../kube/status.ts'
import { deleteKey, orphanWarnings } from './delete.ts'
import { type Engine, scopeOf } from './engine.ts'
import { refuseImmortal } from './namespaces.ts'
import { readDeleteOptions } from './options.ts'
import type { WriteRequest, WriteResult } from './write.ts'

export async function deleteCollection(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const options = await readDeleteOptions(request)
  const labels = parseLabelSelector(request.query('labelSelector') ?? '')
  const known = selectableFields(request.resource, scope.definition?.selectableFields)
  const fields = known.resolve(parseFieldSelector(request.query('fieldSelector') ?? ''))
  const { objects } = scope
  const version = objects.version
  const items = objects.select(request.namespace === '' ? undefined : request.namespace, labels, fields)
  for (const item of items) refuseImmortal(request, item.name)
  for (const item of items) {
    try {
      await deleteKey(engine, scope, item.key, options)
    } catch (error) {
      // Another request has deleted it: that is what was asked for.
      if (!(error instanceof StatusError && error.code === 404)) throw error
    }
  }
  return { code: 200, list: { version, items }, warnings: orphanWarnings(scope, options) }
}
