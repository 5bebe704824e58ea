import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { firstSeed, liveEach } from './lives.test-support.ts'

const run = promisify(execFile)

test('whatever a life throws names its seed and what repeats it', async () => {
  const live = (seed: number) => {
    if (seed === firstSeed) throw new TypeError('of another mind')
  }
  const command = `AKE_SEED=${firstSeed} AKE_SEEDS=1 npm test -- src/base/lives.test.ts repeats it`
  await assert.rejects(liveEach({ file: import.meta.filename, all: 1, live }), {
    message: `${command}: TypeError: of another mind`,
  })
})

test('a life that ends the process by a throw of a timer names its seed too, and one that is lived does not', async () => {
  const support = join(import.meta.dirname, 'lives.test-support.ts')
  const lived = (live: string) =>
    run(
      process.execPath,
      ['-e', `import('${support}').then(({ liveEach }) => liveEach({ file: 'x.test.ts', all: 1, live: ${live} }))`],
      { env: { ...process.env, AKE_SEED: '7', AKE_SEEDS: '1' } },
    )
  const killing = '() => new Promise(() => setTimeout(() => { throw new Error("late") }))'
  await assert.rejects(lived(killing), { stdout: /AKE_SEED=7 AKE_SEEDS=1 npm test -- x\.test\.ts repeats it/ })
  assert.equal((await lived('() => {}')).stdout, '')
})
