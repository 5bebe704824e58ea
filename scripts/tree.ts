/** The files of this repository, read for the checks of the gate. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '..')

/** Everything tracked, or new and not ignored, so that a file is checked before it is committed. */
export function listFiles(): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const paths = execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 << 20 }).split('\0')
  return [...new Set(paths)].filter((path) => path !== '' && existsSync(join(root, path))).sort()
}

/** Path → text, for the paths that match. */
export function readTexts(match: RegExp): Map<string, string> {
  const paths = listFiles().filter((path) => match.test(path))
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

/** For a check run as a program: prints the faults, one per line, and sets the exit code. */
export function report(faults: readonly string[]): void {
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
