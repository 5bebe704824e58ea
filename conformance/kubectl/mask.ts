/**
 * What may differ between two servers that behave alike is replaced by its name: identities, versions, times, ages,
 * addresses. A document that is JSON is printed anew, sorted, without the record of who managed which field.
 */

type Mask = readonly [RegExp, string]

const masks: readonly Mask[] = [
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<uid>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, '<time>'],
  [/(resourceVersion"?(?::\s*|=)"?)\d+/gi, '$1<version>'],
  [/https:\/\/127\.0\.0\.1:\d+/g, '<server>'],
  [/("serverAddress": ")[^"]+/g, '$1<server>'],
  [/\/tmp\/(LIVE|MERGED)-\d+/g, '/tmp/$1'],
  [/\/tmp\/kubectl-edit-\d+/g, '/tmp/kubectl-edit'],
  // The hash names the certificate in use.
  [/X509SHA256=[0-9a-f]{64}/g, 'X509SHA256=<hash>'],
  // A table's column is as wide as its longest age: the blanks behind it go too. The header's own, likewise.
  [/(?<=^| )(\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(?<=\d[ydhms])( ago)?(?=[ ,)]|$) */gm, '<age> '],
  [/\b(AGE|LAST SEEN|LAUNCHED) +/g, '$1 '],
]

export function mask(text: string): string {
  return masks.reduce((masked, [pattern, name]) => masked.replace(pattern, name), jsonInOrder(text))
}

function jsonInOrder(text: string): string {
  if (!text.startsWith('{')) return text
  try {
    return `${JSON.stringify(inOrder(JSON.parse(text)), null, 2)}\n`
  } catch {
    return text
  }
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([name]) => name !== 'managedFields')
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, held]) => [name, inOrder(held)]))
}
