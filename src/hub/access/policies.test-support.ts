/** Policies of a cluster as a test sets them. */
import type { EdgeRules } from '../../policy/policy.ts'
import { type ReadPolicy, readPolicy } from '../../policy/reading.ts'
import { applied, rulesBy } from '../../policy/rules.ts'
import type { EdgePolicies } from './provenrights.ts'

export class SetPolicies implements EdgePolicies {
  isKnown = true
  isWhole = true
  why = 'not read yet'
  #policies: readonly ReadPolicy[]
  readonly #rules = new Map<string, EdgeRules>()

  constructor(specs: Readonly<Record<string, object>> = {}) {
    this.#policies = read(specs)
  }

  set(specs: Readonly<Record<string, object>>): void {
    this.#policies = read(specs)
    this.#rules.clear()
  }

  first(): Promise<void> {
    return Promise.resolve()
  }

  rulesOf(name: string): EdgeRules {
    const rules = this.#rules.get(name) ?? rulesBy(applied(this.#policies, { name, labels: undefined }))
    this.#rules.set(name, rules)
    return rules
  }
}

function read(specs: Readonly<Record<string, object>>): ReadPolicy[] {
  return Object.entries(specs).map(([name, spec]) => readPolicy(JSON.stringify({ metadata: { name }, spec })))
}
