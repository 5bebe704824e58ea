/**
 * Which columns a resource's table has and what stands in them. Columns of the built-ins are facts of the real server;
 * their cells come from a printer per resource, those of custom resources from the CRD. A resource without a printer
 * shows its name and age.
 */

import { builtinColumns } from '../../builtin.ts'
import { qualified } from '../../status.ts'
import { scales, type TableResource } from '../tableresource.ts'
import { corePrinters } from './core.ts'
import { type CustomColumn, compileColumns, printCustom } from './custom.ts'
import { networkPrinters } from './network.ts'
import { podConditions } from './pods.ts'
import { policyPrinters } from './policy.ts'
import { age, type Cell, nameOf, type TableRow, text, type View } from './read.ts'
import { storagePrinters } from './storage.ts'
import { workloadPrinters } from './workloads.ts'

export type { CustomColumn } from './custom.ts'

/** Key order as kube-apiserver prints it. */
export type ColumnDefinition = {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  /** Above 0: only in wide output. */
  readonly priority: number
}

const printers = new Map(
  [workloadPrinters, corePrinters, networkPrinters, storagePrinters, policyPrinters].flatMap(Object.entries),
)

const NAME: ColumnDefinition = { name: 'Name', type: 'string', format: 'name', description: '', priority: 0 }
const CREATED: ColumnDefinition = { name: 'Created At', type: 'date', format: '', description: '', priority: 0 }

const COUNT = { type: 'integer', format: '', description: '', priority: 0 }
const scaleColumns: readonly ColumnDefinition[] = [
  { ...NAME, format: '' },
  { name: 'Desired', ...COUNT },
  { name: 'Available', ...COUNT },
  { name: 'Age', ...COUNT, type: 'string' },
]

export function columnsOf(resource: TableResource, custom?: readonly CustomColumn[]): readonly ColumnDefinition[] {
  if (resource.custom) {
    const own = compileColumns(custom).map(({ name, type, format = '', description = '', priority = 0, jsonPath }) => {
      const fallback = `Custom resource definition column (in JSONPath format): ${jsonPath}`
      return { name, type, format, description: description === '' ? fallback : description, priority }
    })
    return [NAME, ...own]
  }
  if (resource === scales) return scaleColumns
  const facts = builtinColumns()[`${resource.group}/${resource.version}/${resource.resource}`]
  if (facts === undefined) return [NAME, CREATED]
  return facts.map(({ name, type, format, priority }) => ({ name, type, format, description: '', priority }))
}

/** The object's line of the table: one cell per column, in the order of `columnsOf`. */
export function rowOf(
  resource: TableResource,
  object: View,
  nowMs: number,
  custom?: readonly CustomColumn[],
): TableRow {
  if (resource.custom) return { cells: printCustom(object, compileColumns(custom), nowMs) }
  const name = qualified(resource)
  const print = printers.get(name)
  const cells = print === undefined ? plainCells(resource, object, nowMs) : print(object, nowMs)
  const conditions = name === 'pods' ? podConditions(object) : []
  return conditions.length === 0 ? { cells } : { cells, conditions }
}

function plainCells(resource: TableResource, object: View, nowMs: number): readonly Cell[] {
  return columnsOf(resource).map(({ name }) => {
    if (name === 'Name') return nameOf(object)
    if (name === 'Age') return age(object, nowMs)
    // The zero time is what the real server prints for an object that was never created.
    if (name === 'Created At') return text(object, 'metadata', 'creationTimestamp') || '0001-01-01T00:00:00Z'
    return null
  })
}
