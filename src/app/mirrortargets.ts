/** Whether what `--mirror` names can be held: told once discovery was read, and taken back as soon as it can. */
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import { isNear } from './config.ts'
import type { TellMisconfigured } from './misconfigured.ts'
import type { MirrorTarget } from './optionkinds.ts'

type Parts = {
  readonly catalog: CloudCatalog
  readonly wanted: readonly MirrorTarget[]
  readonly tell: TellMisconfigured
}

export function tellTargets({ catalog, wanted, tell }: Parts): void {
  const judge = () => {
    // Before discovery was read whole a resource that is not found may exist.
    if (!catalog.complete) return
    for (const target of wanted) tell(flagOf(target), problemOf(catalog, target))
  }
  judge()
  catalog.observe(judge)
}

function problemOf(catalog: CloudCatalog, target: MirrorTarget): string | undefined {
  const { resource, namespace } = target
  const flag = flagOf(target)
  const found = catalog.resolveName(resource)
  if (found.length > 0) {
    const isWide = namespace !== '' && found.every((one) => !one.resource.namespaced)
    return isWide ? `${flag}: ${resource} are in no namespace: write --mirror ${resource}` : undefined
  }
  const [plural = ''] = resource.split('.')
  const names = new Set([...catalog.resources()].map((one) => one.resource))
  const close = plural.length > 2 ? [...names].find((name) => isNear(name, plural)) : undefined
  const hint = close === undefined ? 'see "kubectl api-resources"' : `did you mean "${close}"?`
  return `${flag}: the API server has no such resource, and nothing is held for it until it does: ${hint}`
}

function flagOf({ resource, namespace }: MirrorTarget): string {
  return `--mirror ${resource}${namespace === '' ? '' : `@${namespace}`}`
}
