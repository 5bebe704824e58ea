/**
 * The key with which an authority signs the tokens of its service accounts: DIR/pki/accounts.key, made at the first start.
 * Every token ends with it.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { UsageError } from '../base/fault.ts'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './privatefile.ts'

const curve = 'prime256v1'

export async function openAccountKey(folder: string): Promise<KeyObject> {
  await makePrivateFolder(folder)
  const path = join(folder, 'accounts.key')
  const pem = await readPrivateFile(path)
  if (pem === undefined) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: curve })
    await writePrivateFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
    return privateKey
  }
  const key = keyIn(pem)
  if (key !== undefined) return key
  throw new UsageError(
    `${path} holds no P-256 key: restore it, or remove it to start with a new one (every token then ends)`,
  )
}

function keyIn(pem: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(pem)
    return key.asymmetricKeyDetails?.namedCurve === curve ? key : undefined
  } catch {
    return undefined
  }
}
