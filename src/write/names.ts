/** Which rule the names of a kind follow, and how a name is made from generateName. */

import { asWholeName, dnsLabelFaults, dnsSubdomainFaults } from '../kube/names.ts'

export type NameRule = 'subdomain' | 'label' | 'segment'

/** What is wrong with a name; a prefix is what generateName holds. */
export function nameFaults(rule: NameRule, name: string, prefix = false): string[] {
  const checked = prefix ? asWholeName(name) : name
  switch (rule) {
    case 'subdomain':
      return dnsSubdomainFaults(checked)
    case 'label':
      return dnsLabelFaults(checked)
    case 'segment':
      return segmentFaults(name, prefix)
  }
}

/** What every stored name must satisfy, so that it can stand in a path. */
export function segmentFaults(value: string, prefix = false): string[] {
  if (!prefix && (value === '.' || value === '..')) return [`may not be '${value}'`]
  return ['/', '%'].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`)
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
