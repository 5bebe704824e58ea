/**
 * The tables of the SQLite engine and how an older file becomes a current one. The schema's number is the file's
 * user_version: a newer one is refused by name (D4).
 */
import type { DatabaseSync } from 'node:sqlite'
import { StoreUnusable } from './store.ts'

export type Migration = { readonly to: number; readonly sql: string }

/** Bodies apart from the rows that point at them: a 3 KB body is written once and never moved by a b-tree. */
export const migrations: readonly Migration[] = [
  {
    to: 1,
    sql: `
      CREATE TABLE interests (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, floor INTEGER NOT NULL DEFAULT 0) STRICT;
      CREATE TABLE bodies (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, checksum INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
      CREATE TABLE objects (
        interest INTEGER NOT NULL, key TEXT NOT NULL, body INTEGER NOT NULL,
        PRIMARY KEY (interest, key)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE history (
        interest INTEGER NOT NULL, version INTEGER NOT NULL, position INTEGER NOT NULL,
        kind INTEGER NOT NULL, key TEXT NOT NULL, body INTEGER, previous INTEGER, size INTEGER NOT NULL,
        PRIMARY KEY (interest, version, position)
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    to: 2,
    // Records in a rowid table: a value of megabytes lies in overflow pages and never moves when its neighbours change.
    // Heads apart from the keys: rows of a few bytes, so that replacing a hundred objects writes few pages.
    sql: `
      ALTER TABLE interests ADD COLUMN synced INTEGER;
      ALTER TABLE objects RENAME TO objects1;
      CREATE TABLE heads (id INTEGER PRIMARY KEY, body INTEGER NOT NULL) STRICT;
      CREATE TABLE objects (
        interest INTEGER NOT NULL, key TEXT NOT NULL, head INTEGER NOT NULL,
        PRIMARY KEY (interest, key)
      ) STRICT, WITHOUT ROWID;
      INSERT INTO heads SELECT body, body FROM objects1;
      INSERT INTO objects SELECT interest, key, body FROM objects1;
      DROP TABLE objects1;
      CREATE TABLE slots (body INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT;
      CREATE TABLE records (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, checksum INTEGER NOT NULL, value BLOB NOT NULL,
        UNIQUE (kind, key)
      ) STRICT;
    `,
  },
]

export const schemaVersion = migrations.at(-1)?.to ?? 0

export function migrate(db: DatabaseSync, steps: readonly Migration[] = migrations): void {
  const row = db.prepare('PRAGMA user_version').get() as { user_version: number }
  const newest = steps.at(-1)?.to ?? 0
  if (row.user_version > newest) {
    throw new StoreUnusable(
      `it was written by a newer ake: schema ${row.user_version}, this program knows up to ${newest}`,
    )
  }
  for (const step of steps) {
    if (step.to <= row.user_version) continue
    // One transaction per step: a crash between steps leaves a file of a known number.
    db.exec(`BEGIN IMMEDIATE; ${step.sql}; PRAGMA user_version = ${step.to}; COMMIT`)
  }
}
