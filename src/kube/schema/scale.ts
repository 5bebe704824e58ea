/** An autoscaling/v1 Scale as it is read out of an object: built-ins by their own fields, others by their definition's paths. */
import { field, isObject, type Json, type JsonObject, text } from '../json/json.ts'
import { internalError, methodNotAllowed } from '../status.ts'
import type { ScalePaths } from './scaled.ts'
import { valueAt, wholeAt } from './scalepaths.ts'
import { quote } from './values.ts'

const builtinPaths: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
}

/** What is scaled: `scale` is what its definition says, of a custom resource. */
export type Scaled = { readonly custom: boolean; readonly scale: ScalePaths | undefined }

/** The Scale of an object as it is served, complete with kind and apiVersion; what has no replicas to tell of has none. */
export function readScale(scaled: Scaled, tree: JsonObject): JsonObject {
  const { specReplicasPath: path } = pathsOf(scaled)
  if (scaled.custom && valueAt(tree, path) === undefined) {
    throw internalError(`the spec replicas field ${quote(path)} does not exist`)
  }
  return scaleOf(scaled, tree)
}

export function scaleOf(scaled: Scaled, tree: JsonObject): JsonObject {
  const { custom } = scaled
  const paths = pathsOf(scaled)
  const meta: JsonObject = new Map()
  for (const name of ['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp']) {
    const value = field(tree, 'metadata', name)
    if (value !== undefined) meta.set(name, value)
  }
  // Built-ins that say nothing have one replica: the API server would have written it into them.
  const wanted = wholeAt(tree, paths.specReplicasPath) ?? (custom ? 0 : 1)
  const status: JsonObject = new Map<string, Json>([['replicas', wholeAt(tree, paths.statusReplicasPath) ?? 0]])
  const selector = custom ? customSelector(tree, paths) : selectorText(field(tree, 'spec', 'selector'))
  if (selector !== '') status.set('selector', selector)
  return new Map<string, Json>([
    ['kind', 'Scale'],
    ['apiVersion', 'autoscaling/v1'],
    ['metadata', meta],
    ['spec', new Map(wanted === 0 ? [] : [['replicas', wanted]])],
    ['status', status],
  ])
}

export function pathsOf({ custom, scale }: Scaled): ScalePaths {
  if (!custom) return builtinPaths
  if (scale === undefined) throw methodNotAllowed()
  return scale
}

function customSelector(tree: JsonObject, { labelSelectorPath }: ScalePaths): string {
  const value = labelSelectorPath === undefined ? undefined : valueAt(tree, labelSelectorPath)
  return typeof value === 'string' ? value : ''
}

/** A label selector as one string; replication controllers have a plain map instead. */
function selectorText(selector: Json | undefined): string {
  if (!isObject(selector)) return ''
  const expressions = selector.get('matchExpressions')
  const labels = selector.get('matchLabels')
  const isPlain = expressions === undefined && labels === undefined
  const pairs = isPlain ? selector : isObject(labels) ? labels : new Map<string, Json>()
  const terms: [key: string, text: string][] = [...pairs].map(([key, value]) => [key, `${key}=${String(value)}`])
  for (const one of Array.isArray(expressions) ? expressions : []) {
    const key = text(one, 'key')
    const values = field(one, 'values')
    const list = (Array.isArray(values) ? values.map(String) : []).sort().join(',')
    const spelled = { In: `${key} in (${list})`, NotIn: `${key} notin (${list})`, Exists: key, DoesNotExist: `!${key}` }
    terms.push([key, spelled[text(one, 'operator') as keyof typeof spelled] ?? key])
  }
  return terms
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, term]) => term)
    .join(',')
}
