/** Segments without their beginning: what a power cut has left of what was never synced, or damage. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { draftFrame, numberFrame } from './frame.ts'
import { encodeHeader, logStart, segmentPath } from './segment.ts'
import { readLog } from './tail.ts'

/** Everything before a frame that `follows` was on the disk when it was written. */
function frame(key: string, sequence: number, follows = false, version = 1): Buffer {
  const change = { interest: '/pods', position: 1, version, key, kind: 'put' as const, body: Buffer.alloc(900, key) }
  const draft = draftFrame({ changes: [change], synced: false })
  numberFrame(draft, sequence, follows)
  return Buffer.concat([draft.head, ...draft.bodies])
}

type Parts = { identity?: number; follows?: boolean; harm: (second: Buffer, from: number) => void }

/** What is found of three frames, the first in a segment of its own, when something happens to the second one. */
function found({ identity = 7, follows = false, harm }: Parts): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'ake-tail-'))
  try {
    const header = { segment: 1, sequence: 1, previous: 0, previousEnd: 0, identity }
    const first = Buffer.concat([encodeHeader(header), frame('a', 1, true)])
    const next = { segment: 2, sequence: 2, previous: 1, previousEnd: first.length, identity }
    const before = Buffer.concat([encodeHeader(next), frame('b', 2, true)])
    const second = Buffer.concat([before, frame('c', 3, follows)])
    harm(second, before.length)
    writeFileSync(segmentPath(folder, 1), first)
    writeFileSync(segmentPath(folder, 2), second)
    const steps = [...readLog({ folder, from: logStart })]
    return steps.map((step) => ('frame' in step ? (step.frame.changes[0]?.key as string) : 'hole'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const blank = (second: Buffer, to: number) => void second.fill(0, 0, to)

test('[D2] a segment whose beginning was never written is the torn end, whatever lies whole behind it', () => {
  assert.deepEqual(found({ harm: () => {} }), ['a', 'b', 'c'])
  assert.deepEqual(found({ harm: blank }), ['a'])
})

test('[D4] it is damage where a frame behind it was written in the knowledge that it is on the disk', () => {
  assert.deepEqual(found({ harm: blank, follows: true }), ['a', 'hole', 'c'])
})

test('[D4] it is damage in the log of an older ake, whose frames do not say what was on the disk', () => {
  assert.deepEqual(found({ harm: blank, identity: 0 }), ['a', 'hole', 'c'])
})

test('[D4] a header that was written and has changed since is damage', () => {
  const harm = (second: Buffer, to: number) => {
    second.fill(0, 36, to)
    second[20] = (second[20] as number) ^ 1
  }
  assert.deepEqual(found({ harm }), ['a', 'hole', 'c'])
})

test('[D4] a last frame with a turned bit in its body is damage, also where its checksum happens to begin with zero', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-tail-'))
  try {
    let last = frame('b', 2)
    for (let version = 2; last[0] !== 0; version++) last = frame('b', 2, false, version)
    last[last.length - 9] = (last[last.length - 9] as number) ^ 1
    const header = { segment: 1, sequence: 1, previous: 0, previousEnd: 0, identity: 7 }
    writeFileSync(segmentPath(folder, 1), Buffer.concat([encodeHeader(header), frame('a', 1, true), last]))
    const told = [...readLog({ folder, from: logStart })].map((step) => 'frame' in step && step.frame.changes[0]?.key)
    assert.deepEqual(told, ['a', 'b'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
