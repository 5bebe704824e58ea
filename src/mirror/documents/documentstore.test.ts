import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createLog, silentLog } from '../../base/log.ts'
import { openMemory } from '../../store/memory.ts'
import { StoreRefused } from '../../store/store.ts'
import { DocumentStore } from './documentstore.ts'

const store = () => openMemory({ historyBytesMax: 0 })
const json = 'application/json'
const arrived = (place: string, content: string, form = json) => ({
  place,
  form,
  accept: form,
  headers: { 'content-type': form },
  gzipped: false,
  basis: 'b',
  body: gzipSync(Buffer.from(content)),
})

async function loaded(over: ReturnType<typeof store>): Promise<DocumentStore> {
  const documentStore = new DocumentStore({ store: over, log: silentLog })
  await documentStore.load()
  return documentStore
}

const read = async (documentStore: DocumentStore, place: string, accept = json) => {
  const head = documentStore.find(place, accept)
  return head === undefined ? undefined : (await documentStore.content(head))?.toString('utf8')
}

test('[D4] a damaged body is never handed out, and is forgotten so that it is fetched again', async () => {
  const over = store()
  await (await loaded(over)).keep(arrived('/version', 'one'))
  const [record] = await over.records('documentbody')
  assert.ok(record)
  const damaged = Buffer.from(record.value)
  damaged[12] = (damaged[12] ?? 0) ^ 1
  await over.commit({ changes: [], synced: false, records: [{ ...record, kind: 'documentbody', value: damaged }] })
  const documentStore = await loaded(over)
  assert.equal(await read(documentStore, '/version'), undefined)
  assert.equal(documentStore.find('/version', json), undefined)
  assert.deepEqual(await over.records('document'), [])
})

test('[D3] a disk that refuses does not cost the answer, and what it holds stays whole', async () => {
  const over = store()
  await (await loaded(over)).keep(arrived('/version', 'one'))
  const full = {
    records: over.records.bind(over),
    record: over.record.bind(over),
    commit: () => Promise.reject(new StoreRefused('disk full', true)),
  }
  const told: string[] = []
  const log = createLog({ level: 'info', write: (line) => void told.push(line) })
  const documentStore = new DocumentStore({ store: full, log })
  await documentStore.load()
  await documentStore.keep(arrived('/version', 'one and a half'))
  await documentStore.keep(arrived('/version', 'two'))
  assert.equal(told.length, 1, 'told once, however often it is tried')
  assert.match(told.join(), /warn document\.unstored why="disk full"/)
  assert.equal(await read(documentStore, '/version'), 'two')
  assert.equal(await read(await loaded(over), '/version'), 'one')
})

test('the same document again writes nothing; a new basis or header writes its head only', async () => {
  const over = store()
  const documentStore = await loaded(over)
  const one = arrived('/apis', 'one')
  assert.equal((await documentStore.keep(one)).changed, true)
  let batches = 0
  let kinds: string[] = []
  const commit = over.commit.bind(over)
  over.commit = (batch) => {
    batches++
    kinds = (batch.records ?? []).map(({ kind }) => kind)
    return commit(batch)
  }
  assert.equal((await documentStore.keep(one)).changed, false)
  assert.equal(batches, 0)
  await documentStore.keep({ ...one, basis: 'c' })
  assert.deepEqual(kinds, ['document'])
  await documentStore.keep({ ...one, basis: 'c', accept: '*/*' })
  assert.deepEqual(kinds, ['document'])
  assert.deepEqual((await loaded(over)).find('/apis', '*/*')?.accepts, [json, '*/*'])
})

test('a header that is answered with another form now no longer gets the old one', async () => {
  const over = store()
  const documentStore = await loaded(over)
  await documentStore.keep(arrived('/apis', 'old', 'application/json;v=v2beta1'))
  await documentStore.keep({
    ...arrived('/apis', 'new', 'application/json;v=v2'),
    accept: 'application/json;v=v2beta1',
  })
  for (const one of [documentStore, await loaded(over)])
    assert.equal(await read(one, '/apis', 'application/json;v=v2beta1'), 'new')
  assert.equal((await over.records('documentbody')).length, 1)
})

test('bodies beyond the memory for them are read from the store', async () => {
  const over = store()
  const documentStore = await loaded(over)
  const noise = (seed: number) => {
    const bytes = Buffer.alloc(1_200_000)
    for (let i = 0; i < bytes.length; i++) bytes[i] = (i * seed * 2654435761) >>> 13
    return bytes
  }
  const body = (seed: number) => ({ ...arrived(`/openapi/v3/${seed}`, ''), body: gzipSync(noise(seed), { level: 0 }) })
  let reads = 0
  const record = over.record.bind(over)
  over.record = (kind, key) => {
    reads++
    return record(kind, key)
  }
  for (const seed of [1, 2, 3]) await documentStore.keep(body(seed))
  for (const seed of [3, 1, 1]) {
    const head = documentStore.find(`/openapi/v3/${seed}`, json)
    assert.ok(head && (await documentStore.content(head))?.equals(noise(seed)))
  }
  assert.equal(reads, 1)
})
