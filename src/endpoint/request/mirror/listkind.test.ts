/** How lists of custom resources are called at an edge when their definition is deleted and made again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definition } from '../../../mirror/documents/cloud.test-support.ts'
import { Body } from '../../../mirror/line.test-support.ts'
import { answered, EdgeCloud, EdgeWorld, statusText } from '../../edgeworld.test-support.ts'

const path = '/apis/pasture.test/v1/oxen'
const crd = 'oxen.pasture.test'
const named = (kind: string, listKind: string) =>
  Buffer.from(definition.toString('utf8').replaceAll('"Ox"', `"${kind}"`).replaceAll('"OxHerd"', `"${listKind}"`))

/** A cloud with one ox, whose kind a test may change: then the watch ends, and its version has expired. */
class Pasture extends EdgeCloud {
  kind = 'Ox'
  listKind = 'OxHerd'
  version = 7
  #watch: Body | undefined

  constructor() {
    super()
    this.script = (asked) => {
      if (!asked.path.startsWith(`${path}?`)) return undefined
      if (!asked.path.includes('watch=')) return answered(200, this.#list())
      const from = Number(new URL(asked.path, 'https://cloud').searchParams.get('resourceVersion'))
      if (from < this.version) return answered(410, statusText(410, 'too old'))
      this.#watch = new Body({ clock: this.clock, random: () => 0, signal: asked.signal })
      return { ...answered(200, ''), body: this.#watch }
    }
  }

  remake(kind: string, listKind: string): void {
    Object.assign(this, { kind, listKind, version: this.version + 10 })
    this.#watch?.end()
  }

  #list(): string {
    const { kind, listKind, version } = this
    const metadata = { name: 'one', namespace: 'a', uid: `u${version}`, resourceVersion: String(version) }
    const items = [{ apiVersion: 'pasture.test/v1', kind, metadata }]
    return JSON.stringify({
      apiVersion: 'pasture.test/v1',
      items,
      kind: listKind,
      metadata: { resourceVersion: String(version) },
    })
  }
}

async function opened(known: (world: EdgeWorld) => void): Promise<{ cloud: Pasture; world: EdgeWorld }> {
  const cloud = new Pasture()
  const world = await EdgeWorld.open({ cloud })
  known(world)
  const first = world.later('GET', `${path}?resourceVersion=0`)
  await world.until(() => first.done)
  assert.equal((await first.answer).json.kind, 'OxHerd')
  return { cloud, world }
}

const kindOf = async (world: EdgeWorld) => (await world.get(`${path}?resourceVersion=0`)).json.kind

test('[A5] a list has the kind of the definition as it is now', async () => {
  const { world: running } = await opened(({ catalog }) => catalog.applyDefinition(crd, definition))
  await using world = running
  world.catalog.applyDefinition(crd, undefined)
  world.catalog.applyDefinition(crd, named('Bull', 'BullHerd'))
  assert.equal(await kindOf(world), 'BullHerd')
})

test('[A5] where no definition is known, a list has the kind that the API server gave it when it was last read', async () => {
  const service = { spec: { group: 'pasture.test', version: 'v1' } }
  const { cloud, world: running } = await opened(({ catalog }) =>
    catalog.applyApiService('v1.pasture.test', Buffer.from(JSON.stringify(service))),
  )
  await using world = running
  cloud.remake('Bull', 'BullHerd')
  const itemKind = async () => (await world.get(`${path}?resourceVersion=0`)).json.items[0]?.kind
  for (let i = 0; i < 60 && (await itemKind()) !== 'Bull'; i++) await world.pass(1_000)
  assert.equal(await itemKind(), 'Bull')
  assert.equal(await kindOf(world), 'BullHerd')
  await world.restart()
  assert.equal(await kindOf(world), 'BullHerd', 'and remembers it')
})
