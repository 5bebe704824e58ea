/**
 * A server's old generation at most doubles before it is collected: by itself V8 lets it grow further the busier a process is, which
 * in a burst or a first sync is garbage that no device has room for. Not by an option of Node: with another flag than V8's default ones
 * Node does without what it has of its own modules compiled ahead, and each start takes a tenth longer.
 */
import { setFlagsFromString } from 'node:v8'

const option = '--heap-growing-percent='

/**
 * From when a server is ready until its end: what it has compiled is kept then for the flags of that moment. Who starts it with an option
 * for it (AKE_NODE_OPTIONS) has that.
 */
export function boundHeapGrowth(signal: AbortSignal): void {
  if (signal.aborted || process.execArgv.some((word) => word.startsWith(option))) return
  setFlagsFromString(`${option}100`)
  signal.addEventListener('abort', () => setFlagsFromString(`${option}0`), { once: true })
}
