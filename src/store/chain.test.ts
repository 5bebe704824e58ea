/** Which files a log consists of, and what is missing where one of them is absent. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readChain } from './chain.ts'
import { encodeHeader, headerBytes, logStart, segmentPath } from './segment.ts'

/** Of a first segment and another one, which continues the one before it from there: which links there are, and which lack something. */
function linksOf(other: { segment: number; previousEnd: number }): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'ake-chain-'))
  try {
    const first = { segment: 1, sequence: 1, previous: 0, previousEnd: 0, identity: 7 }
    for (const header of [first, { ...first, ...other, sequence: 9, previous: other.segment - 1 }]) {
      writeFileSync(segmentPath(folder, header.segment), Buffer.concat([encodeHeader(header), Buffer.alloc(100, 'x')]))
    }
    const links = readChain({ folder, from: logStart })
    return links.map(({ segment, missingBytes }) => (missingBytes > 0 ? `${segment} lacks` : `${segment}`))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('[D4] an absent segment of which nothing counted is no hole in the log: it is that of a loss, and was never written', () => {
  for (const previousEnd of [0, headerBytes]) assert.deepEqual(linksOf({ segment: 3, previousEnd }), ['1', '3'])
})

test('[D4] an absent segment of which something counted is missing, and so are several', () => {
  assert.deepEqual(linksOf({ segment: 3, previousEnd: headerBytes + 1 }), ['1', '3 lacks'])
  assert.deepEqual(linksOf({ segment: 4, previousEnd: 0 }), ['1', '4 lacks'])
})
