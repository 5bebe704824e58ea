/**
 * `npm run bench [name…]`: asks the questions, prints a table of figures beside their goals, keeps them in results.json
 * and writes them into RESULTS.md and the README. The exit code is about errors, not about goals missed.
 */

import { rmSync } from 'node:fs'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { renewDocuments } from '../scripts/readme.ts'
import { compileOnce } from './ake.ts'
import { apply } from './apply.ts'
import { authorize } from './authorize.ts'
import type { Contestant, Figure, Question } from './bench.ts'
import { commit } from './commit.ts'
import { edgeaccess } from './edge/access.ts'
import { edgeburst } from './edge/burst.ts'
import { edgeidle } from './edge/idle.ts'
import { edgememory } from './edge/memory.ts'
import { edgeoverlap } from './edge/overlap.ts'
import { edgeread } from './edge/read.ts'
import { edgeroles } from './edge/roles.ts'
import { edgestall } from './edge/stall.ts'
import { edgestart } from './edge/start.ts'
import { edgeuplink } from './edge/uplink.ts'
import { edgewatch } from './edge/watch.ts'
import { edgewatchlist } from './edge/watchlist.ts'
import { forms } from './forms.ts'
import { get } from './get.ts'
import { hubbytes } from './hub/bytes.ts'
import { hubidle } from './hub/idle.ts'
import { hubjoin } from './hub/join.ts'
import { hublatency } from './hub/latency.ts'
import { hubload } from './hub/load.ts'
import { hubpods } from './hub/pods.ts'
import { hubrules } from './hub/rules.ts'
import { hublink } from './hublink.ts'
import { hubpeers } from './hubpeers.ts'
import { link } from './link.ts'
import { linkedfollow } from './linkedfollow.ts'
import { list } from './list.ts'
import { memory } from './memory.ts'
import { nodename } from './nodename.ts'
import { protobuf } from './protobuf.ts'
import { renewal } from './renewal.ts'
import type { Results } from './report.ts'
import { sealed } from './sealed.ts'
import { session } from './session.ts'
import { openStage } from './stage.ts'
import { start } from './start.ts'
import { table } from './table.ts'
import { tunnel } from './tunnel.ts'
import { watch } from './watch.ts'

const questions: readonly Question[] = [
  ...[list, get, nodename, watch, protobuf, forms, apply, commit, sealed, start, memory, authorize],
  ...[link, session, tunnel, renewal, hublink, hubpeers, linkedfollow],
  ...[hubbytes, hubidle, hublatency, hubload, hubpods, hubrules, hubjoin],
  ...[edgeread, edgeaccess, edgewatch, edgewatchlist, edgeuplink, edgestall, edgestart, edgeburst],
  ...[edgememory, edgeoverlap, edgeroles, edgeidle],
]

const resultsPath = join(import.meta.dirname, 'results.json')

/** The committed figures are those of this checkout, and of nothing that only stands in for it. */
const isOtherProgram = Boolean(process.env.AKE_PROGRAM)

async function run(names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !questions.some((question) => question.name === name))
  if (unknown.length > 0) {
    console.error(`no question "${unknown[0]}": there are ${questions.map(({ name }) => name).join(', ')}`)
    process.exit(2)
  }
  const dir = await mkdtemp(join(tmpdir(), 'ake-bench-'))
  // Whatever ends us, the processes and the folder end with us: they hold ports and hundreds of megabytes.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  await compileOnce()
  const stage = openStage({ dir, say: (line) => console.error(line) })
  const results = await readResults()
  try {
    for (const question of questions.filter(({ name }) => names.length === 0 || names.includes(name))) {
      console.error(`${question.name}:`)
      const figures = (await question.ask(stage)).map(rounded)
      console.log(`\n${table(figures)}\n`)
      // Without a figure of ours there is nothing to keep: an alternative alone is no answer.
      if (!figures.some(({ measured }) => measured.ake !== undefined)) continue
      if (isOtherProgram) continue
      const kept = (results[question.name]?.figures ?? []).filter((figure) => question.keeps?.(figure) === true)
      results[question.name] = { when: new Date().toISOString(), machine: machine(), figures: [...kept, ...figures] }
      await writeFile(resultsPath, `${JSON.stringify(results, null, 2)}\n`)
    }
    if (isOtherProgram) console.error('AKE_PROGRAM is set: figures of another program are shown, not kept')
    else renewDocuments()
  } finally {
    await stage.stop()
  }
}

function rounded(figure: Figure): Figure {
  const entries = Object.entries(figure.measured) as [Contestant, number][]
  return {
    ...figure,
    measured: Object.fromEntries(entries.map(([name, value]) => [name, Number(value.toPrecision(3))])),
  }
}

function machine(): string {
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}`
}

async function readResults(): Promise<{ -readonly [question in keyof Results]: Results[question] }> {
  const text = await readFile(resultsPath, 'utf8').catch(() => '{}')
  return JSON.parse(text) as Results
}

await run(process.argv.slice(2))
process.exit()
