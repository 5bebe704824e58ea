/** What must not leave this machine: registry addresses in lockfiles, absolute paths of a developer's folders in any file. */
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { readTexts, report, root } from './tree.ts'

/** `folders`: absolute paths that only exist on the machine where this runs. */
export function checkLeaks(files: ReadonlyMap<string, string>, folders: readonly string[]): string[] {
  const own = folders.filter((folder) => folder !== '/' && folder !== '/tmp').map((folder) => RegExp.escape(folder))
  // At the start of a word only: `../app/x.ts` says nothing about a checkout in /app.
  const ofSomebody = new RegExp(`(?<![\\w.}/-])(?:${['/(?:home|Users)/[a-z][\\w.-]*', ...own].join('|')})/`)
  const faults: string[] = []
  for (const [path, text] of files) {
    if (path.endsWith('package-lock.json') && /"resolved": "https?:/.test(text)) {
      faults.push(`${path} carries a registry address: run npm install with the .npmrc of this repository`)
    }
    text.split('\n').forEach((line, index) => {
      const found = ofSomebody.exec(line)
      if (found) faults.push(`${path}:${index + 1} carries the path ${found[0]}`)
    })
  }
  return faults
}

if (import.meta.main) {
  // Recorded answers of a real cluster and checksums are not ours to word.
  const texts = readTexts(/^(?!.*(testdata\/|\.jsonl$|\.sum$)).*/)
  report(checkLeaks(texts, [homedir(), dirname(root)]))
}
