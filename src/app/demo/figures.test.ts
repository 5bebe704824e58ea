import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DemoFigures, figuresLine, figuresTable } from './figures.ts'

const cut: DemoFigures = {
  places: [
    { name: 'cloud', objects: 13, version: 96, lag: undefined },
    { name: 'hub', objects: 13, version: 96, lag: { changes: 0, ms: 0 } },
    { name: 'edge-1', objects: 13, version: 64, lag: { changes: 32, ms: 16_400 } },
    { name: 'edge-2', objects: 12, version: 95, lag: { changes: 1, ms: 400 } },
  ],
  ...{ isCut: true, forMs: 1_250, cuts: 1, bytes: { start: 5 << 20, since: { line: 12_288, plain: 140 * 1024 } } },
  ...{ watches: { open: 9, opened: 10 }, events: 80, writes: 71, reads: 142, refused: 0 },
}

test('a terminal is shown a table, and what the link costs beside plain watches', () => {
  assert.equal(
    figuresTable(cut),
    `PLACE    OBJECTS   VERSION   LAG
cloud    13        96        changes are made here
hub      13        96        none
edge-1   13        64        32 changes, 16s
edge-2   12        95        1 change, 0.4s

Line      cut for 1.3s, 1 cut so far
Bytes     12Ki, TLS and all, where plain watches take 140Ki of JSON alone; before that 5.0Mi for the
          first sync and the API's documents
Watches   9 of 10 open since the start; 71 changes, 80 events at both edges
Reads     142 at the edges, 0 refused
`,
  )
})

test('before the line is quiet there is nothing to compare', () => {
  assert.match(figuresTable({ ...cut, bytes: { start: 1024, since: undefined } }), /^Bytes +1\.0Ki for the first sync/m)
})

test('a pipe is told the same in a line', () => {
  assert.equal(
    figuresLine(cut),
    "line cut · cloud 13 objects at 96 · hub 13 objects at 96, lag none · edge-1 13 objects at 64, lag 32 changes, 16s · edge-2 12 objects at 95, lag 1 change, 0.4s · link 12Ki, TLS and all, where plain watches take 140Ki of JSON alone; before that 5.0Mi for the first sync and the API's documents · 9 of 10 watches open · 142 reads, 0 refused",
  )
})
