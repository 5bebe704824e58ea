/**
 * What EdgePolicies (`deploy/edgepolicy.yaml`) say of an edge. Pure: `reading.ts` reads an object, `nodes.ts` says which edges it is
 * for, `rules.ts` answers questions by all policies together, `patterns.ts` is what names may be written as.
 *
 * The rule by which several merge: what allows adds up; what forbids adds up and wins; of numbers the lowest counts. A policy that
 * cannot be read whole allows nothing, and what it forbids counts as far as it can be read, for every edge it may be meant for.
 */
import type { Caller } from '../kube/caller.ts'

/** `by`: which rule of which policy says so, `policy/NAME spec.speakFor[1]`, or why none does. */
export type PolicyVerdict = { readonly yes: boolean; readonly by: string }

/** A collection, or with a name one object of it. `namespace` is empty for all of them, and for what is in none. */
export type PolicedInterest = {
  readonly group: string
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

/** Where it is not known whether a resource has namespaces it is taken to have them, and more is forbidden. */
export type PolicedCollection = Omit<PolicedInterest, 'name'> & { readonly isNamespaced?: boolean }

/** What all policies together say of one edge: the same object for every edge that the same policies are for, until one changes. */
export type EdgeRules = {
  /** The edge's name proves every interest, and its administrator acts with the hub's credential. */
  readonly trusts: boolean
  /** Whether the hub impersonates such a caller, whose certificate the edge was shown. */
  speaksFor(caller: Caller): PolicyVerdict
  /** Whether the edge may hold it beyond what its node may read by itself. */
  holds(asking: PolicedInterest): PolicyVerdict
  /** Whatever else allows it: no edge that this is said of keeps any of it. */
  isNeverMirrored(of: PolicedCollection): PolicyVerdict
  readonly rates: { readonly edgePerSecond?: number; readonly callerPerSecond?: number }
  readonly offline: { readonly tokenAgeMs?: number; readonly serveAgeMs?: number }
}

export const policyResource = { group: 'ake.dev', version: 'v1alpha1', resource: 'edgepolicies' }
