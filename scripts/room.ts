/**
 * The test files that are given, in this process: what `node --test --test-isolation=none` does, but promises are not
 * followed. Node's runner follows each from its beginning to its collection, so that an error that no code awaits fails
 * the test that it belongs to; that took more than half of the processor's time. Here such an error fails the run.
 */
import asyncHooks from 'node:async_hooks'
import { compose } from 'node:stream'
import { inspect } from 'node:util'
import '../src/base/resolution.ts'

const { createHook } = asyncHooks
asyncHooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false })
// Imported only now: the runner takes `createHook` as it finds it.
const { run } = await import('node:test')
const { spec } = await import('node:test/reporters')

/** What failed so far, for the case that something keeps this process from its end. */
const failures: string[] = []
process.once('SIGTERM', () => {
  const open = [...new Set(process.getActiveResourcesInfo())].join(' ')
  process.stderr.write(`${['still open:', open, ...failures].join('\n')}\n`, () => process.exit(1))
})

const events = run({ files: process.argv.slice(2), isolation: 'none' })
events.on('test:fail', ({ name, details }) => failures.push(`✖ ${name}`, inspect(details.error)))
events.on('test:summary', ({ success }) => {
  if (!success) process.exitCode = 1
})
// Where a socket is still closing, Node 26 now and then spins for ever while it takes its environment down: it is spared that.
events.once('test:summary', () => process.once('exit', (code) => process.exit(code)))
compose(events, spec).pipe(process.stdout)
