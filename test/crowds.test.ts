/** Crowds at the door of running processes: unread lists, half-sent bodies. Others are served meanwhile. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../src/base/until.test-support.ts'
import { withSite } from './edgeprocess.ts'
import { Client, configMap, configMaps, memoryMb, withFolder } from './process.ts'

test('[A8] 200 lists that one client does not read leave the others theirs', () =>
  withFolder(async (_, serve) => {
    const serving = await serve()
    const client = new Client(serving)
    const value = 'v'.repeat(400_000)
    for (let n = 0; n < 10; n++) await client.json('POST', configMaps, configMap(`big${n}`, { value }))
    const greedy = new Client(serving, { initialWindowSize: 65_535 })
    const statuses: number[] = []
    for (let n = 0; n < 200; n++) {
      const stream = greedy.open('GET', configMaps)
      stream.on('error', () => {})
      stream.pause()
      statuses.push((await once(stream, 'response'))[0][':status'])
    }
    assert.ok(statuses.includes(429), 'one client got every place there is')
    const others = Array.from({ length: 5 }, () => new Client(serving))
    for (const other of others) assert.equal((await other.ask('GET', configMaps)).status, 200)
    for (const one of [client, greedy, ...others]) one.close()
  }))

const bodyBytes = 2_917_000

test('[A8] half-sent token requests of nobody take nobody’s memory', () =>
  withSite(['--mirror', 'configmaps'], async (site) => {
    const administrator = site.client()
    const path = '/api/v1/namespaces/default/serviceaccounts/default/token'
    // Larger than what 23 such bodies leave of all the memory for bodies.
    const spec = { audiences: ['a'.repeat(100_000)] }
    const wish = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
    await site.untilCloudIs('reachable')
    const before = memoryMb(site.edge.pid)
    const statuses: number[] = []
    const crowd: ClientHttp2Session[] = []
    for (let n = 0; n < 23; n++) {
      const session = connect(site.edge.url, { ca: site.edge.credentials.ca, maxSessionMemory: 100 })
      session.on('error', () => {})
      crowd.push(session)
      const authorization = n % 3 === 0 ? {} : { authorization: `Bearer invented${n}` }
      const stream = session.request({
        ':method': 'POST',
        ':path': path,
        ...authorization,
        'content-length': bodyBytes + 1,
      })
      stream.on('error', () => {})
      stream.on('response', (headers) => statuses.push(headers[':status'] as number))
      stream.resume()
      stream.write(Buffer.alloc(bodyBytes, ' '))
    }
    // As far as they are taken: the rest stays with its sender.
    const isSent = ({ destroyed, socket }: ClientHttp2Session) => destroyed || (socket?.bytesWritten ?? 0) > bodyBytes
    await Promise.race([until(() => crowd.every(isSent), 'bodies'), pause(2_000)]).catch(() => {})
    // The cloud's own word: it has no such account.
    assert.equal((await administrator.ask('POST', path, wish)).status, 404)
    const created = await administrator.ask('POST', configMaps, configMap('x', { value: 'x'.repeat(500_000) }))
    assert.equal(created.status, 201)
    assert.ok(
      statuses.every((status) => status >= 400),
      `${statuses}`,
    )
    const grown = memoryMb(site.edge.pid) - before
    assert.ok(grown < 100, `memory grew by ${grown} MB`)
    for (const session of crowd) session.destroy()
  }))
