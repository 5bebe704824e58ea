/** `ake serve` as a process: what it needs, how it ends, and what a restart keeps. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:http2'
import { Agent, request } from 'node:https'
import { connect as connectTcp, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { withFolderHere } from './edgeprocess.ts'
import { Client, configMap, configMaps, type Frame, runAke, type Serving, Watch, withFolder } from './process.ts'

type Written = Frame['object'] & { metadata: { uid: string } }
type Listed = { metadata: { resourceVersion: string; continue?: string }; items: Written[] }

/** Between two looks whether a server listens again. */
const listeningLookMs = 10

const watching = (version: string, more = '') => `${configMaps}?watch=1&resourceVersion=${version}${more}`

async function fill(client: Client, count: number, prefix = 'c'): Promise<Written[]> {
  const at = (index: number) => configMap(`${prefix}${String(index).padStart(3, '0')}`, { value: String(index) })
  return Promise.all(Array.from({ length: count }, (_, i) => client.json<Written>('POST', configMaps, at(i))))
}

const version = async (client: Client) => (await client.json<Listed>('GET', configMaps)).metadata.resourceVersion

test('[A2] SIGTERM: a bookmark for who asked, the end of every stream without a reset, exit 0', () =>
  withFolder(async (_, serve) => {
    const serving = await serve()
    const client = new Client(serving)
    const plain = new Watch(client, watching('0'))
    const marked = new Watch(client, watching('0', '&allowWatchBookmarks=true'))
    await Promise.all([plain.opened(), marked.opened()])
    const quiet = new Client(serving)
    await quiet.ask('GET', '/version')
    await fill(client, 3)
    await Promise.all([plain.until((all) => all.length >= 3), marked.until((all) => all.length >= 3)])
    const newest = await version(client)
    const startedMs = Date.now()
    const { code, stderr } = await serving.end('SIGTERM')
    assert.equal(code, 0, stderr)
    assert.ok(Date.now() - startedMs < 4_000, `it took ${Date.now() - startedMs} ms`)
    for (const watch of [plain, marked]) assert.deepEqual(await watch.ended, { rstCode: 0, clean: true })
    const last = marked.frames.at(-1)
    assert.equal(last?.type, 'BOOKMARK')
    assert.equal(last?.object.metadata.resourceVersion, newest)
    assert.ok(plain.frames.every(({ type }) => type !== 'BOOKMARK'))
  }))

test('[A2] a client that comes back in the first moment of a new life waits for its answer: a reset would make it list again', () =>
  withFolder(async (folder, serve) => {
    const before = await serve()
    await before.end('SIGTERM')
    const kubeconfig = join(folder, 'admin.kubeconfig')
    // Read between the first connection and the word that it is ready: a pipe holds that up for as long as nobody writes.
    rmSync(kubeconfig)
    execFileSync('mkfifo', [kubeconfig])
    const started = serve('--listen', `127.0.0.1:${before.port}`)
    started.catch(() => {})
    await untilListening(before.port)
    const client = new Client(before)
    const answer = client.ask('GET', '/version')
    answer.catch(() => {})
    await once(client.session, 'connect')
    // What is asked before a ping has arrived when the ping is answered.
    await new Promise<void>((resolve, reject) => {
      client.session.ping((error) => (error === null ? resolve() : reject(error)))
    })
    await writeFile(kubeconfig, '')
    assert.equal((await answer).status, 200)
    await started
    client.close()
  }))

async function untilListening(port: number): Promise<void> {
  for (;;) {
    const socket = connectTcp(port, '127.0.0.1')
    const isListening = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (isListening) return
    await setTimeout(listeningLookMs)
  }
}

test('a large list and a large document are compressed over loopback only where --compress all says so', () =>
  withFolderHere(async (_, serve) => {
    const large = configMap('large', { value: 'x'.repeat(200_000) })
    const encodings = async (serving: Serving) => {
      const client = new Client(serving)
      const asked = [configMaps, '/openapi/v2'].map((path) =>
        client.ask('GET', path, undefined, { 'accept-encoding': 'gzip' }),
      )
      const said = (await Promise.all(asked)).map(({ status, headers }) => [status, headers['content-encoding']])
      client.close()
      return said
    }
    const serving = await serve()
    await new Client(serving).json('POST', configMaps, large)
    assert.deepEqual(await encodings(serving), [
      [200, undefined],
      [200, undefined],
    ])
    await serving.end('SIGTERM')
    assert.deepEqual(await encodings(await serve('--compress', 'all')), [
      [200, 'gzip'],
      [200, 'gzip'],
    ])
  }))

test('SIGTERM: HTTP/1.1 watches end with their last chunk, and an idle connection holds nothing up', () =>
  withFolder(async (_, serve) => {
    const serving = await serve()
    const agent = new Agent({ ...serving.credentials, keepAlive: true })
    const idle = await http1(serving, '/version', agent)
    await idle.whole()
    const watch = await http1(serving, watching('0', '&allowWatchBookmarks=true'), agent)
    const ended = watch.whole()
    const startedMs = Date.now()
    const { code } = await serving.end('SIGTERM')
    assert.equal(code, 0)
    assert.ok(Date.now() - startedMs < 3_000, `it took ${Date.now() - startedMs} ms`)
    assert.match(await ended, /"type":"BOOKMARK".*\n$/s)
    agent.destroy()
  }))

/** `whole` rejects unless the body came to its proper end. */
async function http1(serving: Serving, path: string, agent: Agent): Promise<{ whole(): Promise<string> }> {
  const asking = request(`${serving.url}${path}`, { agent }).end()
  const [response] = await once(asking, 'response')
  return {
    whole: async () => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      assert.ok(response.complete)
      return text
    },
  }
}

test('a young watch that nothing was told is not ended at once: client-go would list again', () =>
  withFolder(async (_, serve) => {
    const serving = await serve()
    const watch = new Watch(new Client(serving), watching(await version(new Client(serving))))
    await watch.opened()
    const openedMs = Date.now()
    const ended = serving.end('SIGTERM')
    assert.deepEqual(await watch.ended, { rstCode: 0, clean: true })
    assert.ok(Date.now() - openedMs > 900, `ended after ${Date.now() - openedMs} ms`)
    assert.equal((await ended).code, 0)
  }))

test('[A2] [A3] a restart keeps objects and versions, and every old watch resumes where it was', () =>
  withFolderHere(async (_, serve) => {
    let serving = await serve()
    let client = new Client(serving)
    const first = await fill(client, 10)
    const name = 'c004'
    const changed = await client.json<Written>('PUT', `${configMaps}/${name}`, configMap(name, { value: 'changed' }))
    await client.json('DELETE', `${configMaps}/c007`)
    const before = await client.json<Listed>('GET', configMaps)
    await serving.end('SIGTERM')

    serving = await serve()
    client = new Client(serving)
    const after = await client.json<Listed>('GET', configMaps)
    assert.deepEqual(after.items, before.items)
    assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion)
    const created = await client.json<Written>('POST', configMaps, configMap('new', { value: 'new' }))
    assert.equal(Number(created.metadata.resourceVersion), Number(after.metadata.resourceVersion) + 1)

    const steps = [...first].sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
    const expected: [string, string][] = steps.map(({ metadata }) => [
      metadata.resourceVersion,
      `ADDED ${metadata.name}`,
    ])
    expected.push([changed.metadata.resourceVersion, `MODIFIED ${name}`])
    expected.push([before.metadata.resourceVersion, 'DELETED c007'])
    expected.push([created.metadata.resourceVersion, 'ADDED new'])
    for (const [index, [from]] of expected.entries()) {
      const watch = new Watch(client, watching(from))
      const rest = expected.slice(index + 1)
      const frames = rest.length === 0 ? [] : await watch.until((all) => all.length >= rest.length)
      assert.deepEqual(
        frames.map(({ type, object }) => [object.metadata.resourceVersion, `${type} ${object.metadata.name}`]),
        rest,
      )
      watch.stream.close()
    }
  }))

test('a continue token is good after a restart, for the state it was given for', () =>
  withFolderHere(async (_, serve) => {
    let serving = await serve()
    let client = new Client(serving)
    await fill(client, 9)
    const page = await client.json<Listed>('GET', `${configMaps}?limit=4`)
    await client.json('DELETE', `${configMaps}/c006`)
    await fill(client, 2, 'd')
    await serving.end('SIGTERM')
    serving = await serve()
    client = new Client(serving)
    const token = encodeURIComponent(page.metadata.continue ?? '')
    const rest = await client.json<Listed>('GET', `${configMaps}?limit=40&continue=${token}`)
    assert.equal(rest.metadata.resourceVersion, page.metadata.resourceVersion)
    const all = [...page.items, ...rest.items].map(({ metadata }) => metadata.name)
    assert.deepEqual(
      all,
      Array.from({ length: 9 }, (_, i) => `c00${i}`),
    )
  }))

test('a version from before the history that is kept: 410, as an event', () =>
  withFolderHere(async (_, serve) => {
    const serving = await serve('--history', '16Ki')
    const client = new Client(serving)
    const start = await version(client)
    await client.json('POST', configMaps, configMap('big', { value: 'x' }))
    for (let i = 0; i < 12; i++) {
      await client.json('PUT', `${configMaps}/big`, configMap('big', { value: String(i).repeat(4_000) }))
    }
    const watch = new Watch(client, watching(start))
    const [frame] = await watch.until((all) => all.length > 0)
    assert.equal(frame?.type, 'ERROR')
    assert.equal(frame?.object.code, 410)
    assert.deepEqual(await watch.ended, { rstCode: 0, clean: true })
    const future = new Watch(client, watching('999999'))
    assert.equal((await future.until((all) => all.length > 0))[0]?.object.code, 410)
  }))

test('a folder or a port in use: one sentence, exit 2', () =>
  withFolder(async (folder, serve) => {
    const serving = await serve()
    const second = await runAke(['serve', '--listen', '127.0.0.1:0', '--data', folder]).ended
    assert.equal(second.code, 2)
    assert.match(second.stderr, /^ake: .* is in use by process \d+: .*\n$/)
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const other = await runAke(['serve', '--listen', `127.0.0.1:${port}`, '--data', join(folder, 'other')]).ended
    taken.close()
    assert.equal(other.code, 2)
    assert.match(other.stderr, new RegExp(`^ake: 127\\.0\\.0\\.1:${port} is in use: .*\\n$`))
    assert.equal((await new Client(serving).ask('GET', '/readyz')).status, 200)
  }))

test('the kubeconfig is for its owner alone; nobody in particular sees only health and version', () =>
  withFolderHere(async (folder, serve) => {
    const serving = await serve()
    assert.equal(statSync(join(folder, 'admin.kubeconfig')).mode & 0o777, 0o600)
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    // Each on a connection of its own: one that is refused ends.
    const status = async (path: string) => {
      const anonymous = connect(serving.url, { ca: serving.credentials.ca })
      const [headers] = await once(anonymous.request({ ':path': path }), 'response')
      anonymous.destroy()
      return headers[':status'] as number
    }
    for (const path of ['/healthz', '/livez', '/readyz', '/version', '/readyz/store', '/livez?verbose']) {
      assert.equal(await status(path), 200, path)
    }
    for (const path of [
      '/',
      '/api',
      '/apis',
      '/metrics',
      '/openapi/v2',
      configMaps,
      '/api/v1/namespaces',
      '/nothing',
    ]) {
      assert.equal(await status(path), 401, path)
    }
  }))
