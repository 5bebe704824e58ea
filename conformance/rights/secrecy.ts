/** What the edge tells about itself and to whom, and what it leaves lying about: no credential in a log or an open file. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Findings } from '../findings.ts'
import { checkPages } from '../secrecy.ts'
import type { RightsWorld } from './world.ts'

/** Its own pages: to the administrator, and to whom the API server would show its own. */
export async function checkOwnPages(world: RightsWorld, findings: Findings, when: string): Promise<void> {
  for (const who of ['node', 'reader', 'nobody', 'anonymous']) {
    const metrics = await world.through(who).ask('/metrics')
    findings.equal([metrics.status, metrics.body.includes('ake_')], [403, false], `${when}: ${who} /metrics`)
    const status = await world.through(who).ask('/ake/status')
    findings.equal([status.status, status.body.includes('interests')], [403, false], `${when}: ${who} /ake/status`)
    findings.equal((await world.through(who).ask('/readyz')).status, 200, `${when}: ${who} /readyz`)
  }
  findings.equal((await world.through('invented').ask('/metrics')).status, 401, `${when}: an invented token, /metrics`)
  for (const path of ['/metrics', '/ake/status']) {
    findings.equal((await world.through('admin').ask(path)).status, 200, `${when}: the administrator ${path}`)
  }
}

export async function checkSecrecy(world: RightsWorld, findings: Findings, issued: readonly string[]): Promise<void> {
  const log = await readFile(`${world.edgeDir}.log`, 'utf8')
  findings.check(log.length > 0, 'the edge has a log')
  const shown = [...world.persons].map(([who, { token }]) => [who, token] as const)
  const secrets = [...shown, ...issued.map((token) => ['issued', token] as const)]
  const files = await filesIn(world.edgeDir)
  const contents = await Promise.all(files.map(({ path }) => readFile(path)))
  for (const [who, token] of secrets) {
    if (token === undefined) continue
    // The signature alone is enough for a forger, and the rest of a token is no secret.
    const core = token.split('.').at(-1) as string
    if (core.length < 20) continue
    findings.check(!log.includes(core), `the token of ${who} is not in the log`)
    if (who === 'issued') continue
    const holders = files.filter((_, at) => contents[at]?.includes(core)).map(({ path }) => path)
    findings.equal(holders, [], `the token of ${who}, which was only shown, is in no file`)
  }
  findings.check(!/hidden-[12]/.test(log), 'no secret in the log')
  await checkPages(findings, async (path) => (await world.through('admin').ask(path)).body)
  const readable = files.filter(({ mode }, at) => (mode & 0o077) !== 0 && contents[at]?.length !== 0)
  const open = readable.map(({ path, mode }) => [path, mode.toString(8)])
  findings.equal(open, [], 'nobody else can read the files of the edge')
  findings.note(`${files.length} files and ${log.length} bytes of log looked through`)
}

async function filesIn(dir: string): Promise<{ path: string; mode: number }[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Promise.all(files.map(async (path) => ({ path, mode: (await stat(path)).mode & 0o777 })))
}
