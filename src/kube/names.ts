/**
 * What a DNS name may look like, in apimachinery's words: names of objects, groups, versions and the prefixes of label
 * keys are held to it. The lists are empty when nothing is wrong.
 */

const LABEL_MAX_BYTES = 63
const SUBDOMAIN_MAX_BYTES = 253

const label1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`

const label1035Pattern = new RegExp(`^${label1035}$`)
const labelPattern = new RegExp(`^${label}$`)
const subdomainPattern = new RegExp(`^${subdomain}$`)

const ends = 'and must start and end with an alphanumeric character'
const label1035Text = `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '${label1035}')`
const labelText = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${ends} (e.g. 'my-name',  or '123-abc', regex used for validation is '${label}')`
const subdomainText = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${ends} (e.g. 'example.com', regex used for validation is '${subdomain}')`

export function dns1035LabelFaults(text: string): string[] {
  const faults = lengthFaults(text, LABEL_MAX_BYTES, 'characters')
  if (!label1035Pattern.test(text)) faults.push(label1035Text)
  return faults
}

export function dnsLabelFaults(text: string): string[] {
  const faults = lengthFaults(text, LABEL_MAX_BYTES, 'characters')
  if (labelPattern.test(text)) return faults
  return [...faults, subdomainPattern.test(text) ? 'must not contain dots' : labelText]
}

/** The unit is a matter of words only: the prefix of a label key is measured like a name and told in bytes. */
export function dnsSubdomainFaults(text: string, unit: 'characters' | 'bytes' = 'characters'): string[] {
  const faults = lengthFaults(text, SUBDOMAIN_MAX_BYTES, unit)
  if (!subdomainPattern.test(text)) faults.push(subdomainText)
  return faults
}

export function lengthFaults(text: string, mostBytes: number, unit: 'characters' | 'bytes'): string[] {
  return Buffer.byteLength(text) > mostBytes ? [`must be no more than ${mostBytes} ${unit}`] : []
}

/** A prefix of names may end in a dash, since something valid will follow it: the text whose faults are the prefix's. */
export function asWholeName(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix
}
