import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeContract } from './contract.ts'
import { openMemory } from './memory.ts'
import { openSqlite } from './sqlite.ts'

storeContract('memory', {
  open: async (historyBytesMax) => ({ store: openMemory({ historyBytesMax }), remove: () => {} }),
})

storeContract('sqlite', {
  open: async (historyBytesMax) => {
    const folder = mkdtempSync(join(tmpdir(), 'ake-store-'))
    const store = openSqlite({ folder, historyBytesMax })
    const reopen = async () => {
      await store.close()
      return openSqlite({ folder, historyBytesMax })
    }
    return { store, reopen, remove: () => rmSync(folder, { recursive: true }) }
  },
})
