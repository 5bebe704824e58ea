/**
 * What does a link cost a hub before it carries anything? CPU and bytes of a handshake, full and resumed, up to the first frame
 * and its answer, and the memory of an idle link. Edges are in this process, the hub's sockets in another.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { edgePair } from '../src/hub/state/certificates.ts'
import { FolderState } from '../src/hub/state/folderstate.ts'
import { KeptState } from '../src/hub/state/keptstate.ts'
import type { LinkSocket } from '../src/link/socket/linksocket.ts'
import { credentialText, type HubCredential, parseCredential } from '../src/pki/credentialfile.ts'
import { type Dial, dialTcp, type Wire } from '../src/upstream/dial.ts'
import type { HubPeer } from '../src/upstream/linked/hubdial.ts'
import { Hubs } from '../src/upstream/linked/hubs.ts'
import type { Figure, Question } from './bench.ts'
import { cpuExactMs, memoryKb } from './process.ts'

const edges = 200
const idleLinks = 1_000
const settleMs = 3_000

export const hublink: Question = {
  name: 'hublink',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-hublink-'))
    try {
      const kept = await KeptState.open({ store: new FolderState(dir), clock: systemClock, log: silentLog })
      const pair = edgePair(kept.current, 'edge-1', systemClock.now())
      const text = credentialText({ ca: kept.current.ca.cert, pair, title: 'bench' })
      return await measured(dir, parseCredential(text, 'bench'), say)
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  },
}

async function measured(dir: string, credential: HubCredential, say: (line: string) => void): Promise<Figure[]> {
  const child = fork(join(import.meta.dirname, 'hubserver.ts'), [dir])
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  const pid = child.pid as number
  const fleet = Array.from({ length: edges }, () => new Edge(port, credential))
  await Promise.all(fleet.slice(0, 20).map((edge) => edge.visit())) // compiles what they run
  const others = fleet.slice(20)
  const cpuOf = async (resumed: boolean) => {
    const before = cpuExactMs(pid)
    const bytes = await Promise.all(others.map((edge) => edge.visit(resumed)))
    return { cpu: (cpuExactMs(pid) - before) / others.length, bytes: bytes[0] ?? 0 }
  }
  const full = await cpuOf(false)
  const resumed = await cpuOf(true)
  const before = memoryKb(pid, 'RssAnon')
  const idle = Array.from({ length: idleLinks }, () => new Edge(port, credential))
  for (let at = 0; at < idle.length; at += 100) await Promise.all(idle.slice(at, at + 100).map((edge) => edge.stay()))
  await pause(settleMs)
  const kilobytes = (memoryKb(pid, 'RssAnon') - before) / idleLinks
  say(`  full ${full.cpu.toFixed(2)} ms, resumed ${resumed.cpu.toFixed(2)} ms, ${kilobytes.toFixed(0)} KB a link`)
  for (const edge of idle) edge.leave()
  child.disconnect()
  await once(child, 'exit')
  const name = (what: string) => `hub, a link, ${what}`
  return [
    { name: name('full handshake'), unit: 'ms CPU', measured: { ake: full.cpu } },
    { name: name('full handshake'), unit: 'bytes', measured: { ake: full.bytes } },
    { name: name('resumed handshake'), unit: 'ms CPU', measured: { ake: resumed.cpu } },
    { name: name('resumed handshake'), unit: 'bytes', measured: { ake: resumed.bytes }, atMost: 4_000 },
    { name: name('idle'), unit: 'KB RssAnon', measured: { ake: kilobytes }, atMost: 100 },
  ]
}

class Edge {
  readonly #hubs: Hubs
  #wire: (Wire & { readonly bytesWritten?: number }) | undefined
  #link: LinkSocket<HubPeer> | undefined

  constructor(port: number, credential: HubCredential) {
    const tcp = dialTcp()
    const dial: Dial = async (to, signal) => {
      const wire = await tcp(to, signal)
      this.#wire = wire
      return wire
    }
    this.#hubs = new Hubs({
      ...{ addresses: [new URL(`wss://127.0.0.1:${port}`)], dial, credential: { current: credential }, now: Date.now },
      ...{ clock: systemClock, log: silentLog, wait: { firstMs: 200, maxMs: 1_000 } },
    })
  }

  /** From nothing to the answer to a first frame, and away again; resolves with the bytes both ways. */
  async visit(resumed = false): Promise<number> {
    const link = await this.stay()
    if (link.peer.resumed !== resumed) throw new Error(`a session was ${resumed ? 'not ' : ''}resumed`)
    const { bytesRead = 0, bytesWritten = 0 } = this.#wire ?? {}
    this.leave()
    return bytesRead + bytesWritten
  }

  async stay(): Promise<LinkSocket<HubPeer>> {
    const link = await this.#hubs.connect(new AbortController().signal)
    if (link === undefined) throw new Error('no link')
    this.#link = link
    await new Promise<void>((resolve) => {
      link.begin({ frame: () => resolve(), ready: () => {}, closed: () => {} })
      link.send(Buffer.of(1))
    })
    this.#hubs.lived()
    return link
  }

  leave(): void {
    this.#link?.close('done', '')
  }
}
