/**
 * The switch of a demo's line, for another terminal: a socket in the demo's own folder, where `ake demo cut` and `ake demo mend`
 * look for it. A folder is its user's alone, and what a demo that was killed left behind does not answer.
 */
import { once } from 'node:events'
import { lstatSync, readdirSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { reasonOf, Unavailable, UsageError } from '../../base/fault.ts'

export const switchWords = ['cut', 'mend'] as const
export type SwitchWord = (typeof switchWords)[number]

export const demoFolderPrefix = 'ake-demo-'
const socketName = 'switch'
/** A demo on this machine that runs answers at once. */
const answerMsMax = 5_000
/** The longest word, and the line's end. */
const questionMax = 5
/** The kernel takes no longer path of a socket. */
const socketPathBytesMax = 107

/** Until it is closed; `turn` answers a sentence. */
export async function openSwitch(folder: string, turn: (word: SwitchWord) => string): Promise<Server> {
  const path = join(folder, socketName)
  if (Buffer.byteLength(path) > socketPathBytesMax) {
    throw new UsageError(
      `the temporary folder ${tmpdir()} has too long a path for a socket: set TMPDIR to a shorter one`,
    )
  }
  const server = createServer((socket) => {
    let asked = ''
    socket.on('error', () => {})
    socket.setEncoding('utf8').on('data', (text: string) => {
      asked += text
      const word = switchWords.find((one) => asked === `${one}\n`)
      if (word !== undefined) socket.end(`${turn(word)}\n`)
      else if (asked.length >= questionMax) socket.destroy()
    })
  })
  await once(server.listen(path), 'listening')
  return server
}

/** Answers what to print; `folder` says which of several demos is meant. */
export async function turnSwitch(word: SwitchWord, folder: string | undefined): Promise<string> {
  const found = await Promise.all((folder === undefined ? demoFolders() : [resolve(folder)]).map(reach))
  const running = found.filter((one) => one !== undefined)
  const [first, ...more] = running
  try {
    if (first === undefined) {
      const where = folder === undefined ? `under ${tmpdir()}` : `in ${folder}`
      throw new Unavailable(`no demo of yours runs ${where}: start one with "ake demo" in another terminal`)
    }
    if (more.length > 0) {
      const calls = running.map((one) => `"ake demo ${word} ${one.folder}"`)
      throw new UsageError(`${running.length} demos run: say which by its folder, ${calls.join(' or ')}`)
    }
    return await ask(first.socket, word)
  } finally {
    for (const { socket } of running) socket.destroy()
  }
}

/** Those of this user alone: what others put in a folder that all share is not trusted. */
function demoFolders(): string[] {
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith(demoFolderPrefix))
    .map((name) => join(tmpdir(), name))
    .filter((path) => {
      const found = lstatSync(path, { throwIfNoEntry: false })
      return found?.isDirectory() === true && found.uid === process.getuid?.()
    })
}

async function reach(folder: string): Promise<{ folder: string; socket: Socket } | undefined> {
  const socket = connect(join(folder, socketName))
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(answerMsMax) })
    return { folder, socket }
  } catch {
    socket.destroy()
    return undefined
  }
}

async function ask(socket: Socket, word: SwitchWord): Promise<string> {
  try {
    socket.setEncoding('utf8').write(`${word}\n`)
    const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(answerMsMax) })) as [string]
    return answer
  } catch (error) {
    throw new Unavailable(`the demo does not answer (${reasonOf(error)}): look at its terminal`)
  }
}
