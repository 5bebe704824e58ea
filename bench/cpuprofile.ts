/** V8's sampling profiles, as a process leaves them that was started with `--cpu-prof`. */

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export type Profile = {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

type ProfileNode = {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

/** The main thread says 0 as its thread in the name; the store's is another. */
export async function readProfiles(dir: string): Promise<{ thread: string; profile: Profile }[]> {
  const files = (await readdir(dir)).filter((name) => name.endsWith('.cpuprofile')).sort()
  if (files.length === 0) throw new Error('ake left no profile')
  const read = async (file: string) => JSON.parse(await readFile(join(dir, file), 'utf8')) as Profile
  return await Promise.all(
    files.map(async (file) => {
      const thread = /\.0\.\d+\.cpuprofile$/.test(file) ? 'main' : 'store'
      return { thread, profile: await read(file) }
    }),
  )
}

/** Which part of the time that a thread was busy went into functions of these files, with all that they called. */
export function shareOf({ nodes, samples, timeDeltas }: Profile, isInside: (url: string) => boolean): number {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const inside = new Set<number>()
  const called = new Set(nodes.flatMap(({ children = [] }) => children))
  const walk = (id: number, isCaller: boolean) => {
    const { callFrame, children = [] } = byId.get(id)!
    const counts = isCaller || isInside(callFrame.url)
    if (counts) inside.add(id)
    for (const child of children) walk(child, counts)
  }
  for (const { id } of nodes) if (!called.has(id)) walk(id, false)
  let [busy, spent] = [0, 0]
  for (const [index, id] of samples.entries()) {
    if (byId.get(id)!.callFrame.functionName === '(idle)') continue
    busy += timeDeltas[index] ?? 0
    if (inside.has(id)) spent += timeDeltas[index] ?? 0
  }
  return spent / busy
}
