/** What a label's key and value may look like, in apimachinery's words: selectors and object metadata are held to it. */

const LABEL_MAX_BYTES = 63
const SUBDOMAIN_MAX_BYTES = 253

const name = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const value = `(${name})?`
const dnsLabel = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${dnsLabel}(\\.${dnsLabel})*`

const namePattern = new RegExp(`^${name}$`)
const valuePattern = new RegExp(`^${value}$`)
const subdomainPattern = new RegExp(`^${subdomain}$`)

const ends = 'and must start and end with an alphanumeric character'
const nameText = `must consist of alphanumeric characters, '-', '_' or '.', ${ends} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${name}')`
const valueText = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ${ends} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${value}')`
const subdomainText = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${ends} (e.g. 'example.com', regex used for validation is '${subdomain}')`

/** What is wrong with a key: `name`, or `dns.prefix/name`. */
export function labelKeyFaults(key: string): string[] {
  const slash = key.indexOf('/')
  if (slash !== key.lastIndexOf('/')) {
    return [`a valid label key ${nameText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]
  }
  const faults: string[] = []
  if (slash === 0) faults.push('prefix part must be non-empty')
  else if (slash > 0) faults.push(...subdomainFaults(key.slice(0, slash)).map((fault) => `prefix part ${fault}`))
  const own = key.slice(slash + 1)
  if (own === '') faults.push('name part must be non-empty')
  else if (tooLong(own, LABEL_MAX_BYTES)) faults.push(`name part must be no more than ${LABEL_MAX_BYTES} bytes`)
  if (!namePattern.test(own)) faults.push(`name part ${nameText}`)
  return faults
}

export function labelValueFaults(text: string): string[] {
  const faults: string[] = []
  if (tooLong(text, LABEL_MAX_BYTES)) faults.push(`must be no more than ${LABEL_MAX_BYTES} bytes`)
  if (!valuePattern.test(text)) faults.push(valueText)
  return faults
}

function subdomainFaults(text: string): string[] {
  const faults: string[] = []
  if (tooLong(text, SUBDOMAIN_MAX_BYTES)) faults.push(`must be no more than ${SUBDOMAIN_MAX_BYTES} bytes`)
  if (!subdomainPattern.test(text)) faults.push(subdomainText)
  return faults
}

function tooLong(text: string, most: number): boolean {
  return Buffer.byteLength(text) > most
}
