/**
 * The differences that docs/api.md admits, read from the table between its markers. A difference that is not listed
 * fails the run, and so does an entry that nothing needs any more: the list can neither lag behind nor lie.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const document = join(import.meta.dirname, '..', 'docs', 'api.md')
/** Which of its tables: what differs at `ake serve`, in server-side apply, and at an edge. */
type Table = 'differences' | 'apply differences' | 'edge differences'

type Place = { readonly name: RegExp; readonly field: RegExp }

export type Listed = { readonly id: string; readonly places: readonly Place[] }

export async function readListed(table: Table = 'differences'): Promise<Listed[]> {
  return parseListed(await readFile(document, 'utf8'), table)
}

/** The first column is the id, the second the places: `case glob` `field glob`, one pair after the other. */
export function parseListed(text: string, name: Table = 'differences'): Listed[] {
  const table = new RegExp(`<!-- ${name} -->\\n([\\s\\S]*?)<!-- /${name} -->`).exec(text)?.[1]
  if (table === undefined) throw new Error(`docs/api.md has no table of ${name} between its markers`)
  const rows = table.trim().split('\n').slice(2)
  return rows.map((row) => {
    const [id, where, ...prose] = row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    const globs = [...(where ?? '').matchAll(/`([^`]+)`/g)].map(([, text]) => glob(text as string))
    if (!id || globs.length === 0 || globs.length % 2 === 1 || prose.length !== 3 || prose.some((cell) => cell === ''))
      throw new Error(`this row of the differences is not complete: ${row}`)
    const places = globs.flatMap((name, at) => (at % 2 === 0 ? [{ name, field: globs[at + 1] as RegExp }] : []))
    return { id, places }
  })
}

/** `*` stands for anything, dots and slashes too. */
function glob(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`)
}

export function admits({ places }: Listed, name: string, field: string): boolean {
  return places.some((place) => place.name.test(name) && place.field.test(field))
}
