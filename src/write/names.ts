/** Rules for the names of objects, in the words of apimachinery; and how a name is made from generateName. */

import { dns1035Label, dns1123Subdomain } from '../schema/names.ts'

export type NameRule = 'subdomain' | 'label' | 'label1035' | 'segment'

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`

const ends = 'and must start and end with an alphanumeric character'
const labelText = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${ends}`

const whole = (pattern: string) => new RegExp(`^(?:${pattern})$`)
const labelRegExp = whole(label)
const subdomainRegExp = whole(subdomain)

const labelMax = 63

/** What is wrong with a name; a prefix is what generateName holds. */
export function nameFaults(rule: NameRule, name: string, prefix = false): string[] {
  // A prefix may end in a dash: something valid will follow it.
  const checked = prefix && rule !== 'segment' && name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name
  switch (rule) {
    case 'subdomain':
      return dns1123Subdomain(checked)
    case 'label':
      return labelFaults(checked)
    case 'label1035':
      return dns1035Label(checked)
    case 'segment':
      return segmentFaults(name, prefix)
  }
}

function labelFaults(value: string): string[] {
  const faults = tooLong(value, labelMax)
  if (labelRegExp.test(value)) return faults
  faults.push(subdomainRegExp.test(value) ? 'must not contain dots' : shape(labelText, label, 'my-name', '123-abc'))
  return faults
}

/** What every stored name must satisfy, so that it can stand in a path. */
export function segmentFaults(value: string, prefix = false): string[] {
  if (!prefix && (value === '.' || value === '..')) return [`may not be '${value}'`]
  return ['/', '%'].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`)
}

function tooLong(value: string, max: number): string[] {
  return Buffer.byteLength(value) > max ? [`must be no more than ${max} bytes`] : []
}

/** The double space after each comma is the real server's. */
function shape(message: string, pattern: string, ...examples: string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ')
  return `${message} (e.g. ${shown}regex used for validation is '${pattern}')`
}

const alphabet = 'bcdfghjklmnpqrstvwxz2456789' // no vowels, so that no word comes out; nothing that looks alike
const suffixLength = 5
const baseMax = 63 - suffixLength

/** `random` answers a whole number below its argument. */
export function generateName(base: string, random: (below: number) => number): string {
  let name = base.slice(0, baseMax)
  for (let i = 0; i < suffixLength; i++) name += alphabet[random(alphabet.length)]
  return name
}
