/** argv → one command. bin/ake starts this on the right Node. */
import { run } from './app/cli.ts'

process.exit(await run(process.argv.slice(2)))
