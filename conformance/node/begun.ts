/** How often each informer of a program has begun from nothing, by the program's own log (client-go, at a verbosity of 2). */
import { readFile } from 'node:fs/promises'

const told = /"Caches populated" (?:logger="[^"]*" )?type="((?:[^"\\]|\\.)*)" reflector="((?:[^"\\]|\\.)*)"/

export async function begunIn(log: string): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  for (const line of (await readFile(log, 'utf8')).split('\n')) {
    const found = told.exec(line)
    if (found === null) continue
    const informer = `${found[1]} ${found[2]}`
    counts.set(informer, (counts.get(informer) ?? 0) + 1)
  }
  return counts
}
