/** `npm run check`, the gate: cheap checks first, a line and a time for each; the first failure shows its output and ends it. */
import { spawnSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { root } from './tree.ts'

const node = process.execPath
const steps: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['types', 'tsc', '--noEmit'],
  ['format and lint', 'biome', 'check', '--error-on-warnings', '.'],
  ['lint with types', 'oxlint', '--type-aware', '--deny-warnings'],
  ['import directions', node, 'scripts/imports.ts'],
  ['dead code', 'knip', '--no-progress'],
  ['rules have tests', node, 'scripts/rules.ts'],
  ['mentions exist', node, 'scripts/mentions.ts'],
  ['documents are fresh', node, 'scripts/readme.ts', '--check'],
  ['nothing leaks', node, 'scripts/leaks.ts'],
  ['tests', node, 'scripts/test.ts'],
]

/** The gate lives every random life; `npm test` a part of them. */
const AKE_LIVES = process.env.AKE_LIVES ?? '1'
const env = { ...process.env, AKE_LIVES, PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}` }
for (const [name, command, ...args] of steps) {
  const start = performance.now()
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    env,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  })
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
  if (status !== 0) {
    console.log(`${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`)
    process.exit(1)
  }
}
