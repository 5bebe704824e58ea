/** The small JSON paths of definitions (`.spec.replicas`, `.spec['a.b']`), followed along a schema. */

import { propertyOf, type Schema, valuesOf } from './schema.ts'

type FoundPath = { readonly names: readonly string[]; readonly schema: Schema | undefined }

/** Where a path leads; a string where it leads nowhere, saying why. */
export function followPath(path: string, schema: Schema, brackets: boolean): FoundPath | string {
  const tokens = path.match(/'(?:\\.|[^'\\])*'|[.[\]]|[^.[\]']+/g) ?? []
  const names: string[] = []
  let at: Schema | undefined = schema
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] as string
    let name: string | undefined
    if (token === '[') {
      if (!brackets) return 'array notation is not allowed'
      const quoted = tokens[++index]
      if (quoted === undefined) return 'unexpected end of JSON path'
      if (!/^'.*'$/s.test(quoted)) return `expected single quoted string but got ${quoted}`
      name = quoted.slice(1, -1).replace(/\\(.)/g, '$1')
      const close = tokens[++index]
      if (close === undefined) return 'unexpected end of JSON path'
      if (close !== ']') return `expected ] but got ${close}`
    } else if (token === '.') {
      name = tokens[++index]
      if (name === undefined) return 'unexpected end of JSON path'
    } else {
      return `expected [ or . but got: ${token}`
    }
    at = at?.properties === undefined ? valuesOf(at) : propertyOf(at, name)
    if (at === undefined) return 'does not refer to a valid field'
    names.push(name)
  }
  return { names, schema: at }
}
