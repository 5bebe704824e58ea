/**
 * argv → one command. The compile cache comes first, so that everything imported after it starts from compiled code:
 * `ake version` takes 94 ms instead of 160.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

try {
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const folder = join(caches, 'ake')
  // Level by level: Node's own recursive mkdir never returns for some paths, such as those under /proc.
  for (const level of [caches, folder]) if (!existsSync(level)) mkdirSync(level, { mode: 0o700 })
  enableCompileCache(join(folder, 'compile'))
} catch {
  // No home folder or none we may write to: a slower start, nothing else.
}

const { run } = await import('./app/cli.ts')
process.exit(await run(process.argv.slice(2)))
