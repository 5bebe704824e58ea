/** Starts each contestant once, on first use, with the same pods in it; says what to install for those that are absent. */

import { access, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fillByWriting, startAke } from './ake.ts'
import { startApiServer } from './apiserver.ts'
import type { Bench, Contestant, Target } from './bench.ts'
import { type Ask, connectTo } from './client.ts'
import { makePods, podCount } from './fixture.ts'
import { startLoad } from './load.ts'
import { type FileServer, startNginx } from './nginx.ts'

const absent: Record<string, string> = {
  ake: 'src/app/serve.ts is not there: nothing of ours to measure',
  nginx: 'nginx is not on the PATH (Debian: apt-get install nginx-light): its column stays empty',
  'kube-apiserver': 'kube-apiserver was not built here (npm run conformance builds it): its column stays empty',
}

type Stage = Bench & { stop(): Promise<void> }

export function openStage({ dir, say }: { dir: string; say: (line: string) => void }): Stage {
  const load = startLoad()
  const started = new Map<Contestant, Promise<Target | undefined>>()
  const folder = async (name: string) => {
    const path = join(dir, name)
    await mkdir(path, { recursive: true })
    return path
  }
  const start = async (name: Contestant): Promise<Target | undefined> => {
    const path = await folder(name)
    if (name === 'nginx') return startNginx(path)
    say(`starting ${name} with ${podCount} pods`)
    return name === 'ake' ? startFilledAke(path) : startApiServer(path, makePods(podCount))
  }
  const one = (name: Contestant) => {
    const known = started.get(name)
    if (known !== undefined) return known
    const starting = start(name).then((target) => {
      if (target === undefined) say(absent[name]!)
      return target
    })
    started.set(name, starting)
    return starting
  }
  const targets = async (...names: Contestant[]) => {
    const found: Target[] = []
    for (const name of names) {
      const target = await one(name)
      if (target !== undefined) found.push(target)
    }
    return found
  }
  return {
    load,
    say,
    targets,
    fresh: async (...names) => {
      for (const target of await targets(...names)) {
        if (target.restart !== undefined) started.set(target.name, target.restart())
      }
      return targets(...names)
    },
    mirror: async (path, like, headers = {}) => {
      const nginx = (await one('nginx')) as FileServer | undefined
      const original = (await targets('ake', 'kube-apiserver'))[0]
      if (nginx !== undefined && original !== undefined)
        await nginx.put(path, await read(original, { path: like, headers }))
    },
    stop: async () => {
      load.stop()
      for (const target of started.values()) await (await target.catch(() => undefined))?.stop()
    },
  }
}

async function startFilledAke(dir: string): Promise<Target | undefined> {
  if (!(await isOurServerThere())) return undefined
  const target = await startAke({ dir })
  await fillByWriting(target, makePods(podCount))
  return target
}

export async function isOurServerThere(): Promise<boolean> {
  if (process.env.AKE_PROGRAM) return true
  return access(join(import.meta.dirname, '..', 'src', 'app', 'serve.ts')).then(
    () => true,
    () => false,
  )
}

async function read(target: Target, asked: Ask): Promise<Buffer> {
  const connection = await connectTo(target, 'h2')
  const { status, body, text } = await connection.ask(asked, true)
  connection.close()
  if (status !== 200 || body === undefined) throw new Error(`${target.name} GET ${asked.path}: ${status} ${text}`)
  return body
}
