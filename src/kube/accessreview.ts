/**
 * What a review of access asks, out of its spec: the attributes that authorizers look at, with selectors as questions have
 * them. A requirement that cannot be used is left out, which asks for more, and said as kube-apiserver says it. Pure.
 */
import { type FieldRequirement, FieldSelector, parseFieldSelector } from './fieldselector.ts'
import { field, type Json, text } from './json/json.ts'
import type { LabelOperator, LabelRequirement } from './labelmatch.ts'
import { labelKeyFaults, labelValueFaults } from './labels.ts'
import { LabelSelector, parseLabelSelector } from './selector.ts'
import { StatusError } from './status.ts'

/** What authorizers look at. */
export type AccessAttributes = {
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** Both selectors normalised; '' selects everything. */
  readonly labels: string
  readonly fields: string
  /** Where no resource is asked about: the path; otherwise ''. */
  readonly path: string
}

export type ReviewedAccess = AccessAttributes & {
  /** What of it was left out, in kube-apiserver's words; '' for nothing. */
  readonly evaluationError: string
}

export function readAccess(spec: Json | undefined): ReviewedAccess {
  const about = field(spec, 'resourceAttributes')
  if (about === undefined || about === null) {
    const { verb, path } = {
      verb: text(spec, 'nonResourceAttributes', 'verb'),
      path: text(spec, 'nonResourceAttributes', 'path'),
    }
    return { ...nothing, verb, path }
  }
  const of = (name: string) => text(about, name)
  const [fields, labels] = [readFields(field(about, 'fieldSelector')), readLabels(field(about, 'labelSelector'))]
  const faults = [faultOf('fieldSelector', fields), faultOf('labelSelector', labels)].filter((fault) => fault !== '')
  return {
    verb: of('verb'),
    group: of('group'),
    version: of('version'),
    resource: of('resource'),
    subresource: of('subresource'),
    namespace: of('namespace'),
    name: of('name'),
    labels: labels.text,
    fields: fields.text,
    path: '',
    evaluationError: faults.join('; '),
  }
}

const nothing: ReviewedAccess = {
  verb: '',
  group: '',
  version: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  labels: '',
  fields: '',
  path: '',
  evaluationError: '',
}

type ReadSelector = { readonly text: string; readonly isWhole: boolean }

function faultOf(name: string, { text: left, isWhole }: ReadSelector): string {
  if (isWhole) return ''
  return `spec.resourceAttributes.${name} ${left === '' ? 'ignored' : 'partially ignored'} due to parse error`
}

function readFields(selector: Json | undefined): ReadSelector {
  const requirements = each(selector, 'requirements')
  if (requirements.length === 0) return readRaw(text(selector, 'rawSelector'), parseFieldSelector)
  const read = requirements.map((one): FieldRequirement | undefined => {
    const operator = fieldOperators[text(one, 'operator')]
    const [value, ...more] = texts(one)
    if (operator === undefined || value === undefined || more.length > 0) return undefined
    return { field: text(one, 'key'), operator, value }
  })
  const usable = read.filter((one) => one !== undefined)
  return { text: new FieldSelector(usable).toString(), isWhole: usable.length === read.length }
}

const fieldOperators: Readonly<Record<string, FieldRequirement['operator']>> = { In: '=', NotIn: '!=' }

function readLabels(selector: Json | undefined): ReadSelector {
  const requirements = each(selector, 'requirements')
  if (requirements.length === 0) return readRaw(text(selector, 'rawSelector'), parseLabelSelector)
  const read = requirements.map((one): LabelRequirement | undefined => {
    const operator = labelOperators[text(one, 'operator')]
    const [key, values] = [text(one, 'key'), texts(one)]
    const wantsValues = operator === 'in' || operator === 'notin'
    if (operator === undefined || wantsValues !== values.length > 0) return undefined
    const isSound = labelKeyFaults(key).length === 0 && values.every((value) => labelValueFaults(value).length === 0)
    return isSound ? { key, operator, values: [...new Set(values)].sort() } : undefined
  })
  const usable = read.filter((one) => one !== undefined)
  return { text: new LabelSelector(usable).toString(), isWhole: usable.length === read.length }
}

const labelOperators: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: 'absent',
}

function readRaw(raw: string, parse: (text: string) => { toString(): string }): ReadSelector {
  try {
    return { text: parse(raw).toString(), isWhole: true }
  } catch (error) {
    if (error instanceof StatusError) return { text: '', isWhole: false }
    throw error
  }
}

function texts(requirement: Json): string[] {
  return each(requirement, 'values').filter((value) => typeof value === 'string')
}

function each(value: Json | undefined, name: string): readonly Json[] {
  const found = field(value, name)
  return Array.isArray(found) ? found : []
}
