/** argv → one command. bin/ake starts this on the right Node. */
import './base/resolution.ts'

const { run } = await import('./app/cli.ts')

process.exit(await run(process.argv.slice(2)))
