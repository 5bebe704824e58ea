/**
 * That nothing which a step's processes told holds a credential: their logs, told by their names in the step's folder, and
 * what an edge tells of itself. A data folder keeps tokens by design and is looked at elsewhere (rights/secrecy.ts).
 */
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { credentialsIn } from '../test/credentials.ts'
import type { Findings } from './findings.ts'

/** Of the API server and its etcd, which are not ours to judge. */
const foreign = 'oracle'

/** What is wrong with the logs below a folder, and how many there are. */
export async function searchLogs(dir: string): Promise<{ readonly logs: number; readonly found: readonly string[] }> {
  const paths = await logsIn(dir)
  const found: string[] = []
  for (const path of paths) {
    const told = credentialsIn(await readFile(path, 'latin1'))
    found.push(...told.map((what) => `${path} tells ${what}`))
  }
  return { logs: paths.length, found }
}

/** An edge's own pages, by whatever asks for them in its administrator's name. */
export async function checkPages(findings: Findings, page: (path: string) => Promise<string>): Promise<void> {
  for (const path of ['/metrics', '/ake/status', '/readyz?verbose']) {
    const text = await page(path)
    findings.check(text.length > 0, `${path} tells something`)
    findings.equal(credentialsIn(text), [], `no credential in ${path}`)
  }
}

async function logsIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
  const found: string[] = []
  for (const entry of entries) {
    const path = join(dir, entry.name)
    // The store's own log has numbers for names.
    if (entry.isFile() && entry.name.endsWith('.log') && !/^\d+\.log$/.test(entry.name)) found.push(path)
    else if (entry.isDirectory() && basename(path) !== foreign) found.push(...(await logsIn(path)))
  }
  return found
}
