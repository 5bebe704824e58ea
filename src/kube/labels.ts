/** What a label's key and value may look like, in apimachinery's words: selectors and object metadata are held to it. */

import { dnsSubdomainFaults, lengthFaults } from './names.ts'

const LABEL_MAX_BYTES = 63

const name = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const value = `(${name})?`

const namePattern = new RegExp(`^${name}$`)
const valuePattern = new RegExp(`^${value}$`)

const ends = 'and must start and end with an alphanumeric character'
const nameText = `must consist of alphanumeric characters, '-', '_' or '.', ${ends} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${name}')`
const valueText = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ${ends} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${value}')`

/** What is wrong with a key: `name`, or `dns.prefix/name`. */
export function labelKeyFaults(key: string): string[] {
  // What matches is of single bytes.
  if (key.length <= LABEL_MAX_BYTES && namePattern.test(key)) return []
  const slash = key.indexOf('/')
  if (slash !== key.lastIndexOf('/')) {
    return [`a valid label key ${nameText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]
  }
  const faults: string[] = []
  if (slash === 0) faults.push('prefix part must be non-empty')
  else if (slash > 0) {
    faults.push(...dnsSubdomainFaults(key.slice(0, slash), 'bytes').map((fault) => `prefix part ${fault}`))
  }
  const own = key.slice(slash + 1)
  if (own === '') faults.push('name part must be non-empty')
  else faults.push(...lengthFaults(own, LABEL_MAX_BYTES, 'bytes').map((fault) => `name part ${fault}`))
  if (!namePattern.test(own)) faults.push(`name part ${nameText}`)
  return faults
}

export function labelValueFaults(text: string): string[] {
  const faults = lengthFaults(text, LABEL_MAX_BYTES, 'bytes')
  if (!valuePattern.test(text)) faults.push(valueText)
  return faults
}
