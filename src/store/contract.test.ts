import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, storeContract } from './contract.test-support.ts'
import { openDurable } from './durable.ts'
import { openMemory } from './memory.ts'
import { mirrorContract } from './mirrorcontract.test-support.ts'
import { testKeys } from './world.test-support.ts'

const engines: Record<string, Engine> = {
  memory: { open: async (historyBytesMax) => ({ store: openMemory({ historyBytesMax }), remove: () => {} }) },
  durable: {
    open: async (historyBytesMax) => {
      const folder = mkdtempSync(join(tmpdir(), 'ake-store-'))
      const store = openDurable({ folder, historyBytesMax, keys: testKeys })
      const reopen = async () => {
        await store.close()
        return openDurable({ folder, historyBytesMax, keys: testKeys })
      }
      return { store, reopen, remove: () => rmSync(folder, { recursive: true }) }
    },
  },
}

for (const [name, engine] of Object.entries(engines)) {
  storeContract(name, engine)
  mirrorContract(name, engine)
}
