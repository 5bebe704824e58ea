/**
 * What is held of a resource, for a person who asked for more of it than that while the cloud is away: a technician types
 * `kubectl get pods` first, where only those of the node are held. Nothing is told that its reader may not list.
 */
import type { Scope } from '../../../kube/scope.ts'
import { qualified } from '../../../kube/status.ts'
import type { Interest } from '../../../mirror/interest.ts'
import type { MirroredInterest } from '../../../mirror/mirrored.ts'

/** A message is one line of a terminal, or a few: what else is held is counted. */
const sentencesMax = 3
const namesMax = 5
/** A longer selector is one that no person types. */
const selectorCharactersMax = 120

/** '' where nothing is. */
export function heldOf(scope: Scope, sharing: Iterable<MirroredInterest>): string {
  const selected: { readonly sentence: string; readonly width: number }[] = []
  const names = new Map<string, string[]>()
  for (const { interest, record, readable, fed } of sharing) {
    if (readable === undefined || !mayBeTold(interest, scope, record.node || record.standing)) continue
    const name = interest.fields.required('metadata.name')
    if (name === undefined) {
      const sentence = sentenceOf(interest, scope)
      if (sentence !== undefined) selected.push({ sentence, width: widthOf(interest) })
    } else if (!fed && readable.size > 0 && isPrintable(name)) {
      // One that is fed lies in a wider one, which is named already.
      names.set(interest.namespace, [...(names.get(interest.namespace) ?? []), name])
    }
  }
  const sentences = [
    ...selected.sort((a, b) => b.width - a.width).map(({ sentence }) => sentence),
    ...[...names].map(([namespace, found]) => namedSentence(scope, namespace, found)),
  ]
  const more = sentences.length - sentencesMax
  return [...sentences.slice(0, sentencesMax), ...(more > 0 ? [`${more} more are`] : [])].join('; ')
}

/**
 * What lies in another namespace is no part of what was asked for. By which selectors other callers look at all namespaces is
 * not for a reader of one; what the kubelet looks at, or an option names, is no secret.
 */
function mayBeTold({ namespace }: Interest, scope: Scope, isNodes: boolean): boolean {
  if (scope.namespace === '' || namespace === scope.namespace) return true
  return namespace === '' && isNodes
}

function widthOf({ labels, fields }: Interest): number {
  return (labels.empty ? 1 : 0) + (fields.empty ? 1 : 0)
}

/** `pods with spec.nodeName=edge1 are held: --field-selector spec.nodeName=edge1`. */
function sentenceOf({ namespace, labels, fields }: Interest, scope: Scope): string | undefined {
  const flags = namespace === scope.namespace || namespace === '' ? [] : [`-n ${namespace}`]
  const selectors: string[] = []
  for (const [flag, selector] of [
    ['-l', labels],
    ['--field-selector', fields],
  ] as const) {
    if (selector.empty) continue
    const text = selector.toString()
    if (!isPrintable(text)) return undefined
    selectors.push(text)
    flags.push(`${flag} ${/^[\w./=,:-]+$/.test(text) ? text : `'${text}'`}`)
  }
  const which = selectors.length === 0 ? '' : ` with ${selectors.join(' and ')}`
  return flags.length === 0 ? undefined : `${placed(scope, namespace)}${which} are held: ${flags.join(' ')}`
}

function namedSentence(scope: Scope, namespace: string, names: readonly string[]): string {
  const shown = names.slice(0, namesMax)
  const more = names.length > shown.length ? ` (and ${names.length - shown.length} more)` : ''
  const flag = namespace === scope.namespace || namespace === '' ? '' : `-n ${namespace} `
  return `${placed(scope, namespace)} are held by name: ${flag}${shown.join(' ')}${more}`
}

function placed(scope: Scope, namespace: string): string {
  return namespace === scope.namespace || namespace === ''
    ? qualified(scope)
    : `${qualified(scope)} in namespace ${namespace}`
}

/** Selectors are what callers wrote: they must not speak to the terminal, nor to its shell, nor fill it. */
function isPrintable(text: string): boolean {
  return text.length <= selectorCharactersMax && /^[\x20-\x26\x28-\x7e]*$/.test(text)
}
