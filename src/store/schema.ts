/**
 * The tables of the index and how an older file becomes a current one. The schema's number is the file's user_version:
 * a newer one is refused by name (D4).
 */
import type { DatabaseSync } from 'node:sqlite'
import { StoreUnusable } from './store.ts'

/** `carry` does in the same transaction what SQL alone cannot. */
export type Migration = { readonly to: number; readonly sql: string; readonly carry?: (db: DatabaseSync) => void }

const first: Migration = {
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
}

/** Heads apart from the keys: rows of a few bytes, so that replacing a hundred objects writes few pages. */
const second: Migration = {
  to: 2,
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
}

/**
 * Bodies lie in the segments of the log; here is where. `segments` counts what each of them still holds, `applied` is how
 * far the log has been read. Segments rise with time: their index is written at its end, not all over.
 */
const third = (carry: (db: DatabaseSync) => void): Migration => ({
  to: 3,
  sql: `
    ALTER TABLE bodies RENAME TO bodies2;
    ALTER TABLE records RENAME TO records2;
    CREATE TABLE bodies (
      id INTEGER PRIMARY KEY, version INTEGER NOT NULL, checksum INTEGER NOT NULL,
      segment INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX bodies_of_segment ON bodies (segment);
    CREATE TABLE records (
      kind TEXT NOT NULL, key TEXT NOT NULL, body INTEGER NOT NULL,
      PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE segments (number INTEGER PRIMARY KEY, size INTEGER NOT NULL, live INTEGER NOT NULL) STRICT;
    CREATE TABLE applied (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      segment INTEGER NOT NULL, start INTEGER NOT NULL, sequence INTEGER NOT NULL
    ) STRICT;
    INSERT INTO applied VALUES (1, 0, 0, 1);
  `,
  carry: (db) => {
    carry(db)
    db.exec('DROP TABLE bodies2; DROP TABLE records2; DROP TABLE slots')
  },
})

/**
 * What tells whether the file is what was written into it: sums over objects, records and interests. `doubted` marks an
 * interest of which something was lost; `identity` is the log's; `bases` counts the bases written; `raised` is the version up to which what was lost may have reached.
 */
const fourth: Migration = {
  to: 4,
  sql: `
    ALTER TABLE interests ADD COLUMN doubted INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE interests ADD COLUMN sum INTEGER;
    ALTER TABLE applied ADD COLUMN identity INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE applied ADD COLUMN bases INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE applied ADD COLUMN raised INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE applied ADD COLUMN holes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE applied ADD COLUMN sum INTEGER;
  `,
}

/**
 * A body may have several holders: objects and entries of different interests. `name` is what later frames may refer to
 * it by; as long as it has one it stays, even without a holder. Each key is there once, with how many objects have it: it
 * was most of what an object takes here. Without them the rows of objects are as small as heads were.
 */
const fifth: Migration = {
  to: 5,
  sql: `
    ALTER TABLE bodies ADD COLUMN holders INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE bodies ADD COLUMN name INTEGER;
    CREATE INDEX bodies_of_name ON bodies (name) WHERE name IS NOT NULL;
    CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, objects INTEGER NOT NULL) STRICT;
    INSERT INTO keys (key, objects) SELECT key, count(*) FROM objects GROUP BY key ORDER BY key;
    ALTER TABLE objects RENAME TO objects4;
    CREATE TABLE objects (
      interest INTEGER NOT NULL, key INTEGER NOT NULL, body INTEGER NOT NULL,
      PRIMARY KEY (interest, key)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO objects SELECT o.interest, k.id, coalesce(h.body, -1)
      FROM objects4 o JOIN keys k ON k.key = o.key LEFT JOIN heads h ON h.id = o.head;
    DROP TABLE objects4;
    DROP TABLE heads;
  `,
}

/** The same tables: the log has references that an older ake cannot read (`frame.ts`). */
const sixth: Migration = { to: 6, sql: '' }

/** The same tables again: segments may be sealed, which an older ake would take for damage (`seal.ts`). */
const seventh: Migration = { to: 7, sql: '' }

/** All steps; `carry` takes the bodies out of the tables that held them and tells `bodies` and `records` where they are. */
export function migrations(carry: (db: DatabaseSync) => void): Migration[] {
  return [first, second, third(carry), fourth, fifth, sixth, seventh]
}

export const newestSchema = seventh.to

/** A new file's tables, as all steps together leave them: renaming and filling what is empty was a fifth of a thread's start. */
const whole = `
  CREATE TABLE interests (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, floor INTEGER NOT NULL DEFAULT 0,
    synced INTEGER, doubted INTEGER NOT NULL DEFAULT 0, sum INTEGER
  ) STRICT;
  CREATE TABLE history (
    interest INTEGER NOT NULL, version INTEGER NOT NULL, position INTEGER NOT NULL,
    kind INTEGER NOT NULL, key TEXT NOT NULL, body INTEGER, previous INTEGER, size INTEGER NOT NULL,
    PRIMARY KEY (interest, version, position)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE bodies (
    id INTEGER PRIMARY KEY, version INTEGER NOT NULL, checksum INTEGER NOT NULL,
    segment INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL,
    holders INTEGER NOT NULL DEFAULT 1, name INTEGER
  ) STRICT;
  CREATE INDEX bodies_of_segment ON bodies (segment);
  CREATE INDEX bodies_of_name ON bodies (name) WHERE name IS NOT NULL;
  CREATE TABLE records (
    kind TEXT NOT NULL, key TEXT NOT NULL, body INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE segments (number INTEGER PRIMARY KEY, size INTEGER NOT NULL, live INTEGER NOT NULL) STRICT;
  CREATE TABLE applied (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    segment INTEGER NOT NULL, start INTEGER NOT NULL, sequence INTEGER NOT NULL,
    identity INTEGER NOT NULL DEFAULT 0, bases INTEGER NOT NULL DEFAULT 0, raised INTEGER NOT NULL DEFAULT 0,
    holes INTEGER NOT NULL DEFAULT 0, sum INTEGER
  ) STRICT;
  INSERT INTO applied (one, segment, start, sequence) VALUES (1, 0, 0, 1);
  CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, objects INTEGER NOT NULL) STRICT;
  CREATE TABLE objects (
    interest INTEGER NOT NULL, key INTEGER NOT NULL, body INTEGER NOT NULL,
    PRIMARY KEY (interest, key)
  ) STRICT, WITHOUT ROWID;
`

/** Of a file without any table. Of another one the steps are what makes it current. */
export function createTables(db: DatabaseSync): void {
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number }
  if (schemaOf(db) !== 0 || tables > 0) return
  db.exec(`BEGIN IMMEDIATE; ${whole} PRAGMA user_version = ${newestSchema}; COMMIT`)
}

function schemaOf(db: DatabaseSync): number {
  return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
}

export function migrate(db: DatabaseSync, steps: readonly Migration[]): void {
  const found = schemaOf(db)
  const newest = steps.at(-1)?.to ?? 0
  if (found > newest) {
    throw new StoreUnusable(`it was written by a newer ake: schema ${found}, this program knows up to ${newest}`)
  }
  for (const step of steps) {
    if (step.to <= found) continue
    // One transaction per step: a crash between steps leaves a file of a known number.
    db.exec(`BEGIN IMMEDIATE; ${step.sql}`)
    step.carry?.(db)
    db.exec(`PRAGMA user_version = ${step.to}; COMMIT`)
  }
}
