/** Rules for the names of objects, in the words of apimachinery; and how a name is made from generateName. */

export type NameRule = 'subdomain' | 'label' | 'label1035' | 'segment'

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`
const label1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'

const ends = 'and must start and end with an alphanumeric character'
const labelText = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${ends}`
const subdomainText = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${ends}`
const label1035Text =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character"

const whole = (pattern: string) => new RegExp(`^(?:${pattern})$`)
const labelRegExp = whole(label)
const subdomainRegExp = whole(subdomain)
const label1035RegExp = whole(label1035)

const labelMax = 63
const subdomainMax = 253

/** What is wrong with a name; a prefix is what generateName holds. */
export function nameFaults(rule: NameRule, name: string, prefix = false): string[] {
  if (rule === 'segment') return segmentFaults(name, prefix)
  // A prefix may end in a dash: something valid will follow it.
  const checked = prefix && name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name
  const most = rule === 'subdomain' ? subdomainMax : labelMax
  const fault = shapeFault(rule, checked)
  const faults = Buffer.byteLength(checked) > most ? [`must be no more than ${most} characters`] : []
  return fault === undefined ? faults : [...faults, fault]
}

function shapeFault(rule: 'subdomain' | 'label' | 'label1035', name: string): string | undefined {
  switch (rule) {
    case 'subdomain':
      return subdomainRegExp.test(name) ? undefined : shape(subdomainText, subdomain, 'example.com')
    case 'label':
      if (labelRegExp.test(name)) return undefined
      return subdomainRegExp.test(name) ? 'must not contain dots' : shape(labelText, label, 'my-name', '123-abc')
    case 'label1035':
      return label1035RegExp.test(name) ? undefined : shape(label1035Text, label1035, 'my-name', 'abc-123')
  }
}

/** What every stored name must satisfy, so that it can stand in a path. */
export function segmentFaults(value: string, prefix = false): string[] {
  if (!prefix && (value === '.' || value === '..')) return [`may not be '${value}'`]
  return ['/', '%'].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`)
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
