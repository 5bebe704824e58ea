/** A hub's state in a folder of its own, for a single hub: one file, so that there is never half of it. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { reasonOf, UsageError } from '../../base/fault.ts'
import { createPrivateFile, makePrivateFolder, readPrivateFile, writePrivateFile } from '../../pki/privatefile.ts'
import type { StateStore, StoredState } from './keptstate.ts'
import { damaged, type StateTexts } from './state.ts'

const file = 'hub.json'

export class FolderState implements StateStore {
  readonly name: string
  readonly outlivesCluster = true
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    this.name = join(folder, file)
  }

  async read(): Promise<StoredState | undefined> {
    const text = await readPrivateFile(this.name)
    if (text !== undefined) return { texts: textsIn(text, this.name), version: text }
    await this.#refuseForeign()
    return undefined
  }

  async create(texts: StateTexts): Promise<boolean> {
    await makePrivateFolder(this.#folder, '--state')
    return await createPrivateFile(this.name, spelled(texts))
  }

  async replace({ version }: StoredState, texts: StateTexts): Promise<boolean> {
    if ((await readPrivateFile(this.name)) !== version) return false
    await writePrivateFile(this.name, spelled(texts))
    return true
  }

  /** A folder that holds other things is another one than was meant, or has lost its state. */
  async #refuseForeign(): Promise<void> {
    const foreign = (await namesIn(this.#folder)).find((name) => !name.startsWith(`.${file}.`) && name !== 'lost+found')
    if (foreign === undefined) return
    throw new UsageError(
      `${this.#folder} has no ${file}, but "${foreign}": restore the state, or give an empty folder with --state for a new hub`,
    )
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw new UsageError(`cannot read ${folder} (${reasonOf(error)}): check --state`)
  }
}

function spelled(texts: StateTexts): string {
  return `${JSON.stringify(texts, null, 2)}\n`
}

function textsIn(text: string, where: string): StateTexts {
  try {
    const content: unknown = JSON.parse(text)
    if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content as StateTexts
  } catch {}
  throw damaged(where, 'it is no JSON object')
}
