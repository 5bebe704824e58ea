/** The syntax of names in definitions, with apimachinery's explanations. */

const LABEL_MAX = 63
const SUBDOMAIN_MAX = 253

const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'
const LABEL_1123 = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN_1123 = `${LABEL_1123}(\\.${LABEL_1123})*`

/** What is wrong with a DNS-1035 label; empty when nothing is. */
export function dns1035Label(text: string): string[] {
  const wrong: string[] = []
  if (text.length > LABEL_MAX) wrong.push(`must be no more than ${LABEL_MAX} bytes`)
  if (!new RegExp(`^${LABEL_1035}$`).test(text)) {
    wrong.push(
      `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '${LABEL_1035}')`,
    )
  }
  return wrong
}

/** What is wrong with a DNS-1123 subdomain; empty when nothing is. */
export function dns1123Subdomain(text: string): string[] {
  const wrong: string[] = []
  if (text.length > SUBDOMAIN_MAX) wrong.push(`must be no more than ${SUBDOMAIN_MAX} bytes`)
  if (!new RegExp(`^${SUBDOMAIN_1123}$`).test(text)) {
    wrong.push(
      `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN_1123}')`,
    )
  }
  return wrong
}

export function dns1123Label(text: string): string[] {
  const wrong: string[] = []
  if (text.length > LABEL_MAX) wrong.push(`must be no more than ${LABEL_MAX} bytes`)
  if (!new RegExp(`^${LABEL_1123}$`).test(text)) {
    wrong.push(
      new RegExp(`^${SUBDOMAIN_1123}$`).test(text)
        ? 'must not contain dots'
        : `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL_1123}')`,
    )
  }
  return wrong
}

const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'

export function labelValue(text: string): string[] {
  const wrong: string[] = []
  if (text.length > LABEL_MAX) wrong.push(`must be no more than ${LABEL_MAX} bytes`)
  if (!new RegExp(`^(${QUALIFIED})?$`).test(text)) {
    wrong.push(
      `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${QUALIFIED})?')`,
    )
  }
  return wrong
}

export function qualifiedName(text: string): string[] {
  const slash = text.indexOf('/')
  const wrong = slash === -1 ? [] : dns1123Subdomain(text.slice(0, slash)).map((why) => `prefix part ${why}`)
  const name = text.slice(slash + 1)
  if (name.length > LABEL_MAX) wrong.push(`name part must be no more than ${LABEL_MAX} bytes`)
  if (!new RegExp(`^${QUALIFIED}$`).test(name)) {
    wrong.push(
      `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED}')`,
    )
  }
  return wrong
}
