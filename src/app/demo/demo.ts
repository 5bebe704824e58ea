/**
 * `ake demo`: the main job, visible. A small site in a cloud of its own (`ake serve`), a hub and two edges as processes of their
 * own, and a line between these and the hub that is cut and mended: clients of the edges do not notice. In a temporary folder,
 * which goes with it.
 */
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DemoConfig } from '../config.ts'
import { seconds } from './figures.ts'
import { takeKeys } from './keys.ts'
import { DemoScreen } from './screen.ts'
import { DemoShow } from './show.ts'
import { type DemoServers, DemoSite, edgeNames } from './site.ts'
import { demoFolderPrefix, openSwitch } from './switch.ts'

/** A server that is killed may still write a file into a folder that is being removed. */
const removal = { recursive: true, force: true, maxRetries: 5, retryDelay: 100 } as const

const lastWordsMs = 500

export async function demo(config: DemoConfig, parts: { readonly signal: AbortSignal }): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), demoFolderPrefix))
  const screen = new DemoScreen(process.stdout)
  const stop = new AbortController()
  const signal = AbortSignal.any([parts.signal, stop.signal])
  const site = new DemoSite({ folder, ...config })
  const atOnce = () => {
    site.kill()
    rmSync(folder, removal)
  }
  process.once('exit', atOnce)
  try {
    const servers = await Promise.race([site.start(), site.failed, aborted(signal)])
    if (servers !== undefined) {
      const over = shown(servers, { folder, screen, signal, stop }).catch(async (error) => {
        // A request that broke may be the first sign of a server that ended, which says more.
        await sleep(lastWordsMs)
        throw error
      })
      await Promise.race([over, site.failed])
    }
  } finally {
    await site.end()
    await rm(folder, removal)
    process.off('exit', atOnce)
    screen.say(`removed ${folder}`)
  }
}

type Shown = {
  readonly folder: string
  readonly screen: DemoScreen
  readonly signal: AbortSignal
  readonly stop: AbortController
}

async function shown(servers: DemoServers, { folder, screen, signal, stop }: Shown): Promise<void> {
  const hasKeys = screen.isLive && process.stdin.isTTY
  const show = new DemoShow({ ...servers, screen, hasKeys })
  const door = await openSwitch(folder, (word) => show.turn(word))
  const release = hasKeys
    ? takeKeys(process.stdin, { turn: (word) => show.turn(word), end: () => stop.abort() })
    : undefined
  try {
    screen.say(introduction(servers, folder))
    await show.run(signal)
  } finally {
    screen.draw('')
    screen.say(show.summary())
    release?.()
    door.close()
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function introduction({ cloud, edges, health }: DemoServers, folder: string): string {
  const lines = [['cloud', cloud] as const, ...edges.map((edge, at) => [edgeNames[at], edge] as const)].map(
    ([name, { kubeconfig }]) => `  kubectl --kubeconfig ${kubeconfig} get sensors -n shop --watch   # at ${name}`,
  )
  return `A cloud with a small site in it (${cloud.url}), a hub, and two edges that mirror the site through it
(${edges.map(({ url }) => url).join(', ')}): four processes, up after ${seconds(process.uptime() * 1000)}. Try, in another terminal, at any moment:

${lines.join('\n')}
  bin/ake status --data ${join(folder, 'edge-1')}
  bin/ake status --health ${health}   # the hub, which speaks the link and not the Kubernetes API
  bin/ake demo cut                    # cuts the line between the edges and the hub; "bin/ake demo mend" mends it

Their logs are in ${folder}, which goes with them when the demo ends (Ctrl-C).
`
}
