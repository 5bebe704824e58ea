/** Where the thread of the index begins. */
import '../base/resolution.ts'

await import('./worker.ts')
