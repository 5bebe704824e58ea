/** Disks that lie, seen from outside: what is lost is named, the rest is served, and an edge gets it again by itself. */
import assert from 'node:assert/strict'
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { SmallDisk } from '../conformance/smalldisk.ts'
import { until } from '../src/base/until.test-support.ts'
import { outputOf, Site, start, statusOf, withFolderHere, withSite, withSiteHere } from './edgeprocess.ts'
import { Client, configMap, configMaps, type Frame, Watch } from './process.ts'

type Item = { metadata: { name: string; resourceVersion: string }; data?: Record<string, string> }
type Listed = { metadata: { resourceVersion: string }; items: Item[] }

const any = `${configMaps}?resourceVersion=0`
/** What was accepted without a sync is synced within 3 s. */
const syncedMs = 4_000

/** As a process, which can be killed. */
const asProcess = ['serve', '--listen', '127.0.0.1:0']

/** Turns a bit where this text is for the last time: a key stands in the head of a frame alone. */
function turnBit(folder: string, text: string): void {
  for (const name of readdirSync(join(folder, 'log')).filter((one) => one.endsWith('.log'))) {
    const path = join(folder, 'log', name)
    const bytes = readFileSync(path)
    const at = bytes.lastIndexOf(text)
    if (at < 0) continue
    bytes[at] = (bytes[at] as number) ^ 1
    writeFileSync(path, bytes)
    return
  }
  assert.fail(`${text} is not in the log`)
}

function loseIndex(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith('ake.db')) rmSync(join(folder, name))
}

test('[D4] one turned bit takes no more than its own frame from an authority: it is named, the rest is served, versions go on', () =>
  withFolderHere(async (folder, serve) => {
    const first = await start(folder, asProcess)
    const client = new Client(first)
    const versions: number[] = []
    for (const name of ['a', 'b', 'c', 'd']) {
      const { metadata } = await client.json<Item>('POST', configMaps, configMap(name, { value: name }))
      versions.push(Number(metadata.resourceVersion))
    }
    await first.end('SIGKILL')
    turnBit(folder, 'default/b')
    loseIndex(folder)
    for (let life = 0; life < 2; life++) {
      const serving = await serve()
      const again = new Client(serving)
      const { items } = await again.json<Listed>('GET', configMaps)
      assert.deepEqual(
        items.map(({ metadata }) => metadata.name),
        ['a', 'c', 'd'],
      )
      const { status, body } = await again.ask('GET', '/readyz?verbose')
      assert.equal(status, 500)
      assert.match(body.toString(), /\[-\]data failed: 1 frames of log segment 1 at \d+ are lost/)
      const { metadata } = await again.json<Item>('POST', configMaps, configMap(`new-${life}`, {}))
      assert.ok(Number(metadata.resourceVersion) > Math.max(...versions))
      // A client that watched from before may have missed the one that is lost: it has to list again.
      const old = await again.ask('GET', `${configMaps}?watch=1&resourceVersion=${versions[0]}&timeoutSeconds=1`)
      assert.match(old.body.toString(), /"code":410/)
      await again.json('DELETE', `${configMaps}/new-${life}`)
      again.close()
      const { stderr } = await serving.end('SIGTERM')
      if (life === 0) assert.match(stderr, /error store\.corrupt segment=1 offset=\d+ frames=1/)
    }
    // The operator who has taken note of it removes the note.
    rmSync(join(folder, 'log', 'aside'), { recursive: true })
    const serving = await serve()
    const last = new Client(serving)
    assert.equal((await last.ask('GET', '/readyz')).status, 200)
    last.close()
  }))

test('[D4] an authority whose log and index are both beyond use says what to do, and touches nothing', () =>
  withFolderHere(async (folder, serve) => {
    const serving = await serve()
    await serving.end('SIGTERM')
    writeFileSync(join(folder, 'ake.db'), 'no database'.repeat(500))
    const [first] = readdirSync(join(folder, 'log')) as [string]
    rmSync(join(folder, 'log', first))
    const { code, stderr } = await outputOf(['serve', '--data', folder, '--listen', '127.0.0.1:0'])
    assert.equal(code, 2)
    assert.match(stderr, /cannot be used, and cannot be made again: there is no log: restore the folder from a backup/)
    assert.ok(existsSync(join(folder, 'ake.db')))
  }))

/** What the store wrote, byte by byte. */
function stored(folder: string): string[] {
  const log = readdirSync(join(folder, 'log')).map((name) => join('log', name))
  return ['ake.db', 'ake.end', ...log].map((name) => `${name} ${readFileSync(join(folder, name), 'base64')}`)
}

test('[D4] rollback: a folder that a newer ake has written is refused by name, by an edge too, which sets nothing aside', () =>
  withSiteHere(['--mirror', 'configmaps'], async (site) => {
    await untilShown(site, await put(site, 'a', '1'))
    await site.edge.end('SIGTERM')
    const index = new DatabaseSync(join(site.edgeFolder, 'ake.db'))
    index.exec('PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)')
    index.close()
    const before = stored(site.edgeFolder)
    for (const command of [['edge', '--kubeconfig', site.kubeconfig], ['serve']]) {
      const { code, stderr } = await outputOf([...command, '--data', site.edgeFolder, '--listen', '127.0.0.1:0'])
      assert.equal(code, 2)
      assert.match(stderr, /cannot be used: it was written by a newer ake: schema 99, this program knows up to \d+$/m)
    }
    assert.deepEqual(stored(site.edgeFolder), before)
    assert.ok(!existsSync(join(site.edgeFolder, 'aside')) && !existsSync(join(site.edgeFolder, 'log', 'aside')))
  }))

function lastSegment(folder: string): string {
  const names = readdirSync(join(folder, 'log')).filter((name) => name.endsWith('.log'))
  return join(folder, 'log', names.sort().at(-1) as string)
}

test('[D4] an authority whose log has lost its end, alone or with the index after an orderly stop, names it, and versions go on', () =>
  withFolderHere(async (folder, serve) => {
    let newest = 0
    for (const isIndexLost of [false, true]) {
      const before = await serve()
      const client = new Client(before)
      const made = await client.json<Item>('POST', configMaps, configMap(`a-${isIndexLost}`, { value: 'a' }))
      newest = Number(made.metadata.resourceVersion)
      client.close()
      await before.end('SIGTERM')
      truncateSync(lastSegment(folder), statSync(lastSegment(folder)).size - 1)
      if (isIndexLost) loseIndex(folder)
      const serving = await serve()
      const again = new Client(serving)
      const { status, body } = await again.ask('GET', '/readyz?verbose')
      assert.equal(status, 500)
      assert.match(body.toString(), /\[-\]data failed: .*the end of the log from \d+ of segment \d+ on is lost/)
      assert.match((await again.ask('GET', '/metrics')).body.toString(), /ake_store_lost_frames [1-9]/)
      const { metadata } = await again.json<Item>('POST', configMaps, configMap(`b-${isIndexLost}`, {}))
      assert.ok(Number(metadata.resourceVersion) > newest + 1_000_000)
      again.close()
      const { stderr } = await serving.end('SIGTERM')
      assert.match(stderr, /error store\.corrupt segment=\d+ offset=\d+ frames=0/)
    }
  }))

test('[D2] [D4] half a frame at the end is cut and told, and an authority is ready; a whole one with a turned bit is named', () =>
  withFolderHere(async (folder, serve) => {
    const first = await start(folder, asProcess)
    const client = new Client(first)
    await client.json('POST', configMaps, configMap('a', { value: 'a' }))
    await client.json('POST', configMaps, configMap('last', { value: 'unmistakable' }))
    client.close()
    await first.end('SIGKILL')
    turnBit(folder, 'unmistakable')
    const second = await start(folder, asProcess)
    const again = new Client(second)
    assert.equal((await again.ask('GET', `${configMaps}/last`)).status, 500)
    assert.match(
      (await again.ask('GET', '/readyz?verbose')).body.toString(),
      /\[-\]data failed: damaged: .*default\/last/,
    )
    await again.json('DELETE', `${configMaps}/last`)
    again.close()
    await second.end('SIGKILL')
    appendFileSync(lastSegment(folder), 'half a frame')
    const third = await serve()
    const last = new Client(third)
    assert.equal((await last.ask('GET', '/readyz')).status, 200)
    last.close()
    const { stderr } = await third.end('SIGTERM')
    assert.match(stderr, /warn store\.cut segment=1 offset=\d+ bytes=12/)
  }))

test('[D4] an authority whose log and index are both gone does not begin as an empty one; an edge says so and mirrors again', async () => {
  await withFolderHere(async (folder, serve) => {
    const serving = await serve()
    await serving.end('SIGTERM')
    rmSync(join(folder, 'log'), { recursive: true })
    loseIndex(folder)
    const { code, stderr } = await outputOf(['serve', '--data', folder, '--listen', '127.0.0.1:0'])
    assert.equal(code, 2)
    assert.match(stderr, /log and .*ake\.db are gone.*remove .*ake\.end.*restore the folder from a backup/)
    rmSync(join(folder, 'ake.end'))
    await (await serve()).end('SIGTERM')
  })
  await withSiteHere(['--mirror', 'configmaps'], async (site) => {
    const item = await put(site, 'a', '1')
    await untilShown(site, item)
    await site.edge.end('SIGTERM')
    rmSync(join(site.edgeFolder, 'log'), { recursive: true })
    loseIndex(site.edgeFolder)
    await site.startEdge()
    await untilShown(site, item)
    assert.match((await site.edge.end('SIGTERM')).stderr, /error store\.setAside .*are gone/)
  })
})

async function put(site: Site, name: string, value: string): Promise<Item> {
  const cloud = site.client(site.cloud)
  const { status, body } = await cloud.ask('PUT', `${configMaps}/${name}`, configMap(name, { value }))
  if (status < 300) return JSON.parse(body.toString()) as Item
  return await cloud.json<Item>('POST', configMaps, configMap(name, { value }))
}

async function untilShown(site: Site, { metadata }: Item): Promise<void> {
  const client = site.client()
  const isThere = async () => {
    const { status, body } = await client.ask('GET', any)
    if (status !== 200) return false
    const { items } = JSON.parse(body.toString()) as Listed
    return items.some((one) => one.metadata.resourceVersion === metadata.resourceVersion)
  }
  await until(isThere, `${metadata.name} at ${metadata.resourceVersion}`)
}

test('[D4] an edge that lost part of its log shows none of what may be concerned until it was compared with the cloud; no watch has to list again', () =>
  withSite(['--mirror', 'configmaps'], async (site) => {
    await untilShown(site, await put(site, 'a', '1'))
    await untilShown(site, await put(site, 'b', '1'))
    const lost = await put(site, 'b', '2')
    await untilShown(site, lost)
    await new Promise((resolve) => setTimeout(resolve, syncedMs))
    const last = await put(site, 'a', '2')
    await untilShown(site, last)
    await site.edge.end('SIGKILL')
    site.isEdgeProcess = false
    turnBit(site.edgeFolder, 'default/b')
    loseIndex(site.edgeFolder)
    await site.link.set('refuse')
    await site.startEdge()
    const away = await site.client().ask('GET', any)
    assert.equal(away.status, 503, away.body.toString())
    assert.match(
      (await site.readyz()).text,
      /\[\+\]data ok: .*frames of log segment \d+ at \d+ are lost; damaged: .*"\*"/,
    )
    const status = await statusOf(site.edgeFolder)
    assert.match(status, /Damage: +\d+ frames of log segment/)
    await put(site, 'c', '1')
    await site.link.set('up')
    await untilShown(site, lost)
    const client = site.client()
    const seen: Frame[] = []
    const from = lost.metadata.resourceVersion
    const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=${from}`, (frame) => seen.push(frame))
    await watch.until((frames) =>
      frames.some(({ object }) => object.metadata.resourceVersion === last.metadata.resourceVersion),
    )
    assert.ok(seen.every(({ type }) => type !== 'ERROR'))
    const { stderr } = await site.edge.end('SIGTERM')
    assert.match(stderr, /store\.corrupt/)
    // It was settled for good: the next start shows it without its cloud.
    await site.link.set('refuse')
    await site.startEdge()
    const { items } = await site.client().json<Listed>('GET', any)
    assert.deepEqual(
      items.filter(({ metadata: { name } }) => name === 'a' || name === 'b').map(({ data }) => data?.value),
      ['2', '2'],
    )
  }))

test('[D4] an edge whose index is lost, garbage or unreadable makes it again from its log; what it cannot use at all it sets aside and mirrors again', () =>
  withSiteHere(['--mirror', 'configmaps'], async (site) => {
    const item = await put(site, 'a', '1')
    await untilShown(site, item)
    const ca = readFileSync(join(site.edgeFolder, 'pki', 'ca.crt'), 'utf8')
    for (const harm of ['lost', 'garbage'] as const) {
      await site.edge.end('SIGTERM')
      loseIndex(site.edgeFolder)
      if (harm === 'garbage') writeFileSync(join(site.edgeFolder, 'ake.db'), 'no database'.repeat(500))
      await site.link.set('refuse')
      await site.startEdge()
      await untilShown(site, item)
      await site.link.set('up')
      await site.untilCloudIs('reachable')
      assert.match((await site.edge.end('SIGTERM')).stderr, /warn store\.remade/)
      await site.startEdge()
    }
    await site.edge.end('SIGTERM')
    writeFileSync(join(site.edgeFolder, 'ake.db'), 'no database'.repeat(500))
    rmSync(join(site.edgeFolder, 'log', '0000000001.log'))
    await site.startEdge()
    await untilShown(site, item)
    assert.equal(readFileSync(join(site.edgeFolder, 'pki', 'ca.crt'), 'utf8'), ca)
    assert.ok(existsSync(join(site.edgeFolder, 'aside', 'log')))
    const status = await statusOf(site.edgeFolder)
    assert.match(status, /Damage: +what could not be used is in .*aside/)
    assert.match((await site.edge.end('SIGTERM')).stderr, /error store\.setAside/)
  }))

test('[D4] an edge that lost what it wrote down of an interest names it until it was mirrored again, and drops nothing unseen', () =>
  withSite([], async (site) => {
    await site.client().json('GET', configMaps)
    const item = await put(site, 'a', '1')
    await untilShown(site, item)
    await new Promise((resolve) => setTimeout(resolve, syncedMs))
    await site.edge.end('SIGKILL')
    site.isEdgeProcess = false
    turnBit(site.edgeFolder, '"resource":"configmaps"')
    await site.link.set('refuse')
    for (let life = 0; life < 2; life++) {
      await site.startEdge()
      assert.equal((await site.client().ask('GET', any)).status, 503)
      const { text } = await site.readyz()
      assert.match(text, /\[\+\]data ok: what v1\/configmaps.* is was lost: .*damaged: v1\/configmaps.* "\*"/)
      const status = await statusOf(site.edgeFolder)
      assert.match(status, /Damage: +what v1\/configmaps.* is was lost/)
      const { stderr } = await site.edge.end('SIGTERM')
      assert.match(stderr, /error store\.corrupt record=interest key=v1\/configmaps/)
    }
    await site.link.set('up')
    await site.startEdge()
    await untilShown(site, item)
    await until(async () => /\[\+\]data ok: whole/.test((await site.readyz()).text), 'it is whole')
    await site.edge.end('SIGTERM')
    await site.link.set('refuse')
    await site.startEdge()
    const { items } = await site.client().json<Listed>('GET', any)
    assert.ok(items.some(({ metadata }) => metadata.resourceVersion === item.metadata.resourceVersion))
  }))

test('[D3] a disk that the kernel makes read-only: an edge goes on with what it holds and says so; a start on it says what to do, and a copy of the folder serves', async (context) => {
  const site = new Site()
  const disk = SmallDisk.mount(site.folder, site.edgeFolder, 24)
  if (typeof disk === 'string') {
    context.skip(disk)
    await site.end()
    return
  }
  const refused = async () => {
    const { code, stderr } = await outputOf(['edge', '--kubeconfig', site.kubeconfig, '--data', site.edgeFolder])
    assert.equal(code, 2)
    assert.match(stderr, /^ake: (\S+) lies on \1, which is mounted read-only: repair .* mount it writable .*, or copy/)
  }
  try {
    await site.startCloud()
    await site.startEdge('--mirror', 'configmaps')
    const before = await put(site, 'before', '1')
    await untilShown(site, before)
    await new Promise((resolve) => setTimeout(resolve, syncedMs))
    const client = site.client()
    const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=${before.metadata.resourceVersion}`)
    await watch.opened()
    disk.fail()
    const meanwhile = await put(site, 'meanwhile', '1')
    await until(async () => (await site.readyz()).code === 500, 'it is told')
    assert.match((await site.readyz()).text, /\[-\]store failed: the disk refuses writes/)
    assert.match(await statusOf(site.edgeFolder), /THE DISK REFUSES WRITES.*mount it writable/s)
    await untilShown(site, before)
    assert.equal((await client.ask('GET', `${configMaps}/before`)).status, 200)
    assert.equal((await client.ask('POST', configMaps, configMap('through', {}))).status, 201)
    assert.deepEqual([watch.stream.closed, watch.frames.length], [false, 0])
    const { code, stderr } = await site.edge.end('SIGTERM')
    assert.equal(code, 0, stderr)
    assert.match(stderr, /error store\.refused why=".*EROFS: read-only file system/)
    await refused()

    const own = site.edgeFolder
    Object.assign(site, { edgeFolder: join(site.folder, 'copy') })
    cpSync(own, site.edgeFolder, { recursive: true })
    await site.link.set('refuse')
    await site.startEdge()
    await untilShown(site, before)
    await site.edge.end('SIGTERM')

    Object.assign(site, { edgeFolder: own })
    disk.repair()
    disk.remount('ro')
    await refused()
    disk.remount('rw')
    await site.link.set('up')
    await site.startEdge()
    await untilShown(site, meanwhile)
    assert.equal((await site.readyz()).code, 200)
  } finally {
    await site.edge?.end('SIGKILL')
    disk.unmount()
    await site.end()
  }
})
