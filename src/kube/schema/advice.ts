/** What a definition is accepted with, yet warned about: formats that are not checked, rules this server cannot evaluate. */

import { field, type JsonObject } from '../json/json.ts'
import { unevaluatedRules } from './cel/cel.ts'
import { child, keyed, NO_PATH } from './errors.ts'
import { effectiveFormat } from './formats.ts'
import { type Schema, valuesOf } from './schema.ts'
import { quote } from './values.ts'
import { schemaIn, versionsOf } from './versions.ts'

/** Formats the stored definition `old` already has are not mentioned again. */
export function definitionWarnings(crd: JsonObject, old?: JsonObject): string[] {
  const known = old === undefined ? [] : adviceOf(old).formats
  const { formats, rules } = adviceOf(crd)
  const fresh = formats.filter((format) => !known.includes(format))
  return [...new Set([...fresh.map((format) => `unrecognized format ${quote(format)}`), ...rules])]
}

type Advice = { readonly formats: string[]; readonly rules: string[] }

function adviceOf(crd: JsonObject): Advice {
  const advice: Advice = { formats: [], rules: [] }
  for (const version of versionsOf(field(crd, 'spec'))) {
    const schema = schemaIn(version)
    if (schema !== undefined) visit(schema, NO_PATH, advice)
  }
  return advice
}

function visit(schema: Schema, path: string, advice: Advice): void {
  const { format } = schema
  if (format !== undefined && format !== '' && effectiveFormat(schema.type, format) === '') advice.formats.push(format)
  if ((schema['x-kubernetes-validations']?.length ?? 0) > 0) advice.rules.push(...unevaluatedRules(schema, path))
  for (const [name, property] of Object.entries(schema.properties ?? {})) visit(property, child(path, name), advice)
  if (schema.items !== undefined) visit(schema.items, keyed(path, '*'), advice)
  const values = valuesOf(schema)
  if (values !== undefined) visit(values, keyed(path, '*'), advice)
}
