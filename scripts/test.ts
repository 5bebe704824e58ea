/**
 * `npm test`: the unit tests beside the source in one process, which is many times faster than one each, then the scenarios
 * of test/ in a process each. `npm test -- cache watch` runs the files whose path contains one of the words, and shows
 * every test; options for Node (`--test-name-pattern=…`) are passed on.
 */
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { root } from './tree.ts'

const testTimeoutMs = 120_000 // a hanging test is reported by name instead of blocking the gate

const words = process.argv.slice(2).filter((arg) => !arg.startsWith('-'))
const flags = process.argv.slice(2).filter((arg) => arg.startsWith('-'))
const chosen = (glob: string) =>
  globSync(glob, { cwd: root })
    .filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
    .sort()

const unit = chosen('src/**/*.test.ts')
const scenarios = chosen('test/**/*.test.ts')
if (unit.length + scenarios.length === 0) {
  console.error(`no test file contains ${words.join(' or ')} in its path`)
  process.exit(1)
}
const results = [await runNode(['--test-isolation=none'], unit), await runNode([], scenarios)]
process.exitCode = results.every((code) => code === 0) ? 0 : 1

async function runNode(settings: string[], files: string[]): Promise<number> {
  if (files.length === 0) return 0
  const args = ['--test', '--test-reporter=spec', `--test-timeout=${testTimeoutMs}`, ...settings, ...flags, ...files]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = new Promise<number>((resolve) => void child.on('close', (code) => resolve(code ?? 1)))
  for await (const line of createInterface({ input: child.stdout })) {
    // Without a filter only failures and the summary are worth reading.
    if (words.length > 0 || !/^\s*[✔▶]/.test(line)) console.log(line)
  }
  return closed
}
