import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { builtinFacts } from '../builtin.ts'
import {
  loadPrinters,
  partialListAround,
  renderPartial,
  renderTable,
  type TableObject,
  type TableParts,
} from './table.ts'

before(loadPrinters)

const namespaces = builtinFacts().resources.find((one) => one.resource === 'namespaces' && one.group === '')!
const pods = builtinFacts().resources.find((one) => one.resource === 'pods' && one.group === '')!

/** A number no JSON.parse keeps and a spacing no printer makes show whether bytes were passed on as they are. */
function namespace(name: string): TableObject {
  const metadata = `{ "name":"${name}","creationTimestamp":"2026-01-01T00:00:00Z","generation":9007199254740993}`
  const object = `{"kind":"Namespace","apiVersion":"v1","metadata":${metadata},"status":{"phase":"Active"}}`
  return { bytes: Buffer.from(object), metadata: Buffer.from(metadata) }
}

const parts: TableParts = {
  resource: namespaces,
  objects: [namespace('a'), namespace('b')],
  includeObject: 'Metadata',
  listMeta: { resourceVersion: '7' },
  nowMs: Date.parse('2026-01-01T00:00:30Z'),
  columns: true,
  metaVersion: 'v1',
}

test('[A5] a table passes the metadata of its objects on byte by byte', () => {
  const [first, second] = parts.objects
  const column = (name: string, format: string): string =>
    `{"name":"${name}","type":"string","format":"${format}","description":"","priority":0}`
  const row = (name: string, object: TableObject): string =>
    `{"cells":["${name}","Active","30s"],"object":` +
    `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":${object.metadata}}}`
  assert.equal(
    renderTable(parts).toString(),
    '{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":' +
      `[${column('Name', 'name')},${column('Status', '')},${column('Age', '')}],` +
      `"rows":[${row('a', first!)},${row('b', second!)}]}`,
  )
})

test('includeObject decides what a row carries', () => {
  const [first] = parts.objects
  const rendered = (includeObject: TableParts['includeObject']): string =>
    renderTable({ ...parts, objects: [first!], includeObject, columns: false }).toString()
  assert.ok(
    rendered('None').endsWith('"columnDefinitions":null,"rows":[{"cells":["a","Active","30s"],"object":null}]}'),
  )
  assert.ok(rendered('Object').endsWith(`"object":${first!.bytes}}]}`))
})

test('an empty page still has columns and an empty list of rows', () => {
  const listMeta = { resourceVersion: '7', continue: 'c<', remainingItemCount: 5 }
  const table = renderTable({ ...parts, objects: [], listMeta, metaVersion: 'v1beta1' }).toString()
  assert.ok(table.startsWith('{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","metadata":{"resourceVersion":"7",'))
  assert.ok(table.includes('"continue":"c\\u003c","remainingItemCount":5},"columnDefinitions":[{'))
  assert.ok(table.endsWith('"rows":[]}'))
})

test('a finished pod has a condition, and markup is escaped as Go does', () => {
  const metadata = Buffer.from('{"name":"p"}')
  const bytes = Buffer.from('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"status":{"phase":"Failed"}}')
  const table = renderTable({ ...parts, resource: pods, objects: [{ bytes, metadata }], includeObject: 'None' })
  assert.ok(
    table
      .toString()
      .endsWith(
        '"rows":[{"cells":["p","0/0","Failed","0","\\u003cunknown\\u003e","\\u003cnone\\u003e","\\u003cnone\\u003e",' +
          '"\\u003cnone\\u003e","\\u003cnone\\u003e"],"conditions":[{"type":"Completed","status":"True",' +
          '"reason":"Failed","message":"The pod failed."}],"object":null}]}',
      ),
  )
})

test('[A5] partial metadata is the metadata as it was', () => {
  const a = Buffer.from('{"name":"a","generation":9007199254740993}')
  const partial = (metadata: Buffer): string =>
    `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":${metadata}}`
  assert.equal(renderPartial(a, 'v1').toString(), partial(a))
  const head = '{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":'
  assert.deepEqual(partialListAround({ resourceVersion: '9' }, 'v1'), {
    head: `${head}{"resourceVersion":"9"},"items":[`,
    end: ']}',
  })
  assert.equal(partialListAround({ resourceVersion: '' }, 'v1').head, `${head}{},"items":[`)
})
