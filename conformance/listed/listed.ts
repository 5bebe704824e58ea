/**
 * The differences that are admitted, with the cases that show each. A difference that is not listed fails the run, and so does an
 * entry that nothing needs any more: the list can neither lag behind nor lie. docs/api.md tells them, written from here.
 */
import { apply } from './apply.ts'
import { edge } from './edge.ts'
import { serve } from './serve.ts'

export type Difference = {
  readonly id: string
  /** What kube-apiserver does, what ake does, and why not the same. */
  readonly real: string
  readonly ours: string
  readonly why: string
  /** By the field that differs, the cases in which it may; `*` stands for anything, dots and slashes too. */
  readonly where: Readonly<Record<string, readonly string[]>>
}

type Place = { readonly name: RegExp; readonly field: RegExp }

export type Listed = { readonly id: string; readonly places: readonly Place[] }

/** Which of the tables: what differs at `ake serve`, in server-side apply, and at an edge. */
const tables = { differences: serve, 'apply differences': apply, 'edge differences': edge }
export type Table = keyof typeof tables

export function listedIn(table: Table = 'differences'): Listed[] {
  return tables[table].map(listed)
}

export function listed({ id, real, ours, why, where }: Difference): Listed {
  const places = Object.entries(where).flatMap(([field, cases]) =>
    cases.map((one) => ({ name: glob(one), field: glob(field) })),
  )
  if (places.length === 0 || [id, real, ours, why].some((text) => text.trim() === ''))
    throw new Error(`the difference ${id} is not complete`)
  return { id, places }
}

/** The table as docs/api.md has it; which cases show a difference stands only here. */
export function differencesMarkdown(table: Table): string {
  const ours = table === 'edge differences' ? 'ake edge' : 'ake'
  const rows = tables[table].map(({ id, ...told }) => `| ${[id, told.real, told.ours, told.why].join(' | ')} |`)
  return [`| id | kube-apiserver | ${ours} | why |`, '| --- | --- | --- | --- |', ...rows, ''].join('\n')
}

function glob(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`)
}

export function admits({ places }: Listed, name: string, field: string): boolean {
  return places.some((place) => place.name.test(name) && place.field.test(field))
}
