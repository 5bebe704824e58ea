/**
 * Files of the first two schemas hold the bodies themselves. Here they go into segments, in the order in which they will
 * be read, inside the transaction that makes the file a current one: a crash before its end leaves the old file as it
 * was, and segments that nothing refers to: the next start writes over them or removes them.
 */
import type { DatabaseSync } from 'node:sqlite'
import { BodySegments } from './bodysegments.ts'

type OldBodyRow = { id: number; version: number; checksum: number; bytes: Uint8Array }
type RecordRow = { kind: string; key: string; checksum: number; value: Uint8Array }

/** A body belongs to an object, or to the entry that replaced it. */
const bodyQueries = [
  `SELECT b.id, b.version, b.checksum, b.bytes FROM objects o
    JOIN heads h ON h.id = o.head JOIN bodies2 b ON b.id = h.body ORDER BY o.interest, o.key`,
  `SELECT b.id, b.version, b.checksum, b.bytes FROM history h
    JOIN bodies2 b ON b.id = h.previous ORDER BY h.interest, h.version, h.position`,
]

export function carryBodies(
  db: DatabaseSync,
  { folder, segmentBytes }: { folder: string; segmentBytes: number },
): void {
  const kept = new BodySegments({ folder, segmentBytes, last: undefined })
  try {
    const add = db.prepare('INSERT INTO bodies VALUES (?, ?, ?, ?, ?, ?)')
    for (const query of bodyQueries) {
      for (const row of db.prepare(query).iterate()) {
        // A damaged one is taken over as it is: its checksum will tell.
        const { id, version, checksum, bytes } = row as unknown as OldBodyRow
        const { segment, start } = kept.add(bytes)
        add.run(id, version, checksum, segment, start, bytes.length)
      }
    }
    const addRecord = db.prepare('INSERT INTO records VALUES (?, ?, ?)')
    for (const row of db.prepare('SELECT kind, key, checksum, value FROM records2').iterate()) {
      const { kind, key, checksum, value } = row as unknown as RecordRow
      const { segment, start } = kept.add(value)
      addRecord.run(kind, key, add.run(null, 0, checksum, segment, start, value.length).lastInsertRowid)
    }
    db.exec('INSERT INTO segments SELECT segment, sum(length), sum(length) FROM bodies GROUP BY segment')
    kept.sync()
  } finally {
    kept.close()
  }
}
