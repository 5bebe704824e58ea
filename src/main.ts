/** argv → one command. The compile cache comes first, so that everything imported after it starts from compiled code. */
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

try {
  // Saves a third of the time to `ready`; where the folder cannot be written, Node goes on without it.
  enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'ake', 'compile'))
} catch {
  // No home folder: a slower start, nothing else.
}

const { run } = await import('./app/cli.ts')
process.exit(await run(process.argv.slice(2)))
