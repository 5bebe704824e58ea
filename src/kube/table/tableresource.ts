/** What a table needs to know about the resource of its objects. Apart from the printers, which are loaded with the first table. */
import type { Resource } from '../resource.ts'

export type TableResource = Pick<Resource, 'group' | 'version' | 'resource' | 'custom'>

/** The resource of a Scale: none lists it, it is computed from what it scales. */
export const scales: TableResource = { group: 'autoscaling', version: 'v1', resource: 'scales', custom: false }
