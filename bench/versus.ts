/**
 * `node bench/versus.ts CHECKOUT [--rounds 5] [name…]`: the same questions to this checkout and to another one, in turn, each
 * by its own `bench/run.ts`; names joined by commas are asked in one run, which fills its server once. Printed, after each
 * round, is the median of each row of both, and ours as a multiple of the other's: what a change costs, on a machine whose
 * speed changes by the hour. Alternatives are left out, as they are the same for both, unless `--all` asks for them (some
 * questions need kube-apiserver).
 */

import { spawn } from 'node:child_process'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { median } from './median.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, all: { type: 'boolean', default: false } },
})
const [other, ...names] = positionals
const rounds = Number(values.rounds)
if (other === undefined || !(rounds > 0)) {
  console.error('usage: node bench/versus.ts CHECKOUT [--rounds N] [--all] [name…]')
  process.exit(2)
}
const checkouts = { ours: join(import.meta.dirname, '..'), theirs: resolve(other) }

/** By row and side. */
const found = new Map<string, { ours: number[]; theirs: number[] }>()
for (let round = 0; round < rounds; round++) {
  for (const name of names.length === 0 ? [''] : names) {
    // Who comes first changes: what the first leaves behind must not always fall on the same side.
    const sides = round % 2 === 0 ? (['theirs', 'ours'] as const) : (['ours', 'theirs'] as const)
    for (const side of sides) {
      console.error(`round ${round + 1} of ${rounds}: ${name === '' ? 'all' : name}, ${side}`)
      for (const [row, figure] of await figuresOf(checkouts[side], name)) {
        const both = found.get(row) ?? { ours: [], theirs: [] }
        both[side].push(figure)
        found.set(row, both)
      }
    }
  }
  console.log(`after ${round + 1} of ${rounds} rounds:`)
  print()
}

/** What was found so far. */
function print(): void {
  for (const [row, { ours, theirs }] of found) {
    const [a, b] = [median(ours), median(theirs)]
    const ratio = b > 0 ? `${(a / b).toFixed(3)} ×` : ''
    console.log(`${row.padEnd(70)} ${shown(b).padStart(10)} → ${shown(a).padStart(10)}   ${ratio}`)
  }
}

/** The column `ake` of the tables that a run prints. */
async function figuresOf(checkout: string, name: string): Promise<ReadonlyMap<string, number>> {
  const alone = values.all ? {} : { AKE_CACHE: join(checkout, 'none') }
  const child = spawn(process.execPath, ['bench/run.ts', ...(name === '' ? [] : name.split(','))], {
    cwd: checkout,
    env: { ...process.env, ...alone, AKE_PROGRAM: join(checkout, 'bin', 'ake') },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let text = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) text += chunk
  const figures = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, title = '', unit = '', ake = ''] = line.split('|').map((cell) => cell.trim())
    const figure = Number(ake.replaceAll(',', ''))
    if (title !== '' && ake !== '' && Number.isFinite(figure)) figures.set(`${title} (${unit})`, figure)
  }
  return figures
}

function shown(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(3))) : '–'
}
