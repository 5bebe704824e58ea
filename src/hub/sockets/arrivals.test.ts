/** Many connections from one place, over sockets in memory and on a clock that stands still. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { settle } from '../../mirror/world.test-support.ts'
import { Arrivals } from './arrivals.ts'
import { standardHubLimits } from './limits.ts'

/** The first message of a client, as far as it is read; with a ticket or without. */
function helloOf(hasTicket: boolean): Buffer {
  const extension = hasTicket ? Buffer.of(0, 41, 0, 0) : Buffer.of(0, 43, 0, 0)
  const head = Buffer.concat([Buffer.of(1, 0, 0, 0, 3, 3), Buffer.alloc(32), Buffer.of(0, 0, 2, 19, 1, 1, 0, 0, 4)])
  const hello = Buffer.concat([head, extension])
  return Buffer.concat([Buffer.of(22, 3, 1, 0, hello.length), hello])
}

class Crowd {
  readonly clock = fakeClock()
  readonly limits = { ...standardHubLimits, arrivalsMax: 2_000 }
  /** Of each source, those whose turn has come. */
  readonly begun = new Map<string, Socket[]>()
  readonly arrivals = new Arrivals({
    ...{ clock: this.clock, limits: this.limits },
    begin: (socket) => void this.begun.getOrInsertComputed(socket.remoteAddress ?? '', () => []).push(socket),
  })
  #ports = 0

  count(source: string): number {
    return this.begun.get(source)?.length ?? 0
  }

  /** Their clients' ends. */
  async come(source: string, count: number, says: Buffer | undefined): Promise<Duplex[]> {
    const ends: Duplex[] = []
    for (let at = 0; at < count; at++) {
      const [ours, theirs] = duplexPair()
      Object.assign(ours, { remoteAddress: source, remotePort: ++this.#ports, localAddress: 'hub', localPort: 1 })
      theirs.on('error', () => undefined).resume()
      this.arrivals.add(ours as unknown as Socket)
      if (says !== undefined) theirs.write(says)
      ends.push(theirs)
    }
    await settle(6)
    return ends
  }

  [Symbol.dispose](): void {
    this.arrivals.end()
  }
}

test('[L22] invented tickets of one source: so many are tried, then it waits with full handshakes, and edges from elsewhere get through', async () => {
  using crowd = new Crowd()
  const { fullPerSecond, ticketsOnTrialMax, lineMsMax } = crowd.limits
  await crowd.come('stranger', 1_500, helloOf(true))
  await crowd.come('edge', 1, helloOf(true))
  await crowd.come('edge', 1, helloOf(false))
  crowd.clock.advance(lineMsMax)
  await settle(6)
  assert.equal(crowd.count('edge'), 2)
  // None of them was answered to its end, so none is known to be worth anything.
  const most = ticketsOnTrialMax + (fullPerSecond * lineMsMax) / 1_000 + fullPerSecond / 10
  assert.ok(crowd.count('stranger') <= most, `${crowd.count('stranger')} of ${most}`)
  assert.ok(crowd.arrivals.turnedAway > 0)
})

test('[L22] tickets that were worth something leave their source as it was, those that were not do for some seconds', async () => {
  using crowd = new Crowd()
  const { ticketsOnTrialMax } = crowd.limits
  const resume = async (source: string, isWorth: boolean) => {
    await crowd.come(source, 1, helloOf(true))
    crowd.clock.advance(5)
    crowd.arrivals.secured(crowd.begun.get(source)?.at(-1) as Socket, isWorth)
  }
  const full = async () => {
    const before = crowd.count('other')
    await crowd.come('other', 1, helloOf(false))
    return crowd.count('other') > before
  }
  for (let at = 0; at < 3 * ticketsOnTrialMax; at++) await resume('edges', true)
  assert.equal(crowd.count('edges'), 3 * ticketsOnTrialMax)
  assert.ok(await full(), 'they took nothing from full handshakes')
  for (let at = 0; at < ticketsOnTrialMax; at++) await resume('rotated', false)
  assert.ok(!(await full()), 'they cost as much as full handshakes')
})

test('[L22] connections that say nothing: of the source that has the most the oldest goes', async () => {
  using crowd = new Crowd()
  const [edge] = await crowd.come('edge', 1, undefined)
  const strangers = await crowd.come('stranger', 3_000, undefined)
  assert.equal(crowd.arrivals.size, 2_000)
  assert.equal(strangers.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length, 1_001)
  edge?.write(helloOf(false))
  await settle(6)
  assert.equal(crowd.count('edge'), 1)
})
