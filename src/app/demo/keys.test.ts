import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { takeKeys } from './keys.ts'

/** As much of one as is asked of it. */
class Terminal extends EventEmitter {
  readonly said: string[] = []
  setRawMode(isRaw: boolean) {
    this.said.push(`raw ${isRaw}`)
    return this as never
  }
  setEncoding(encoding: string) {
    this.said.push(encoding)
    return this as never
  }
  pause() {
    this.said.push('paused')
    return this as never
  }
}

test('c cuts, m mends, q ends, as Ctrl-C and Ctrl-D do; the terminal is given back', () => {
  const terminal = new Terminal()
  const found: string[] = []
  const release = takeKeys(terminal as never, {
    turn: (word) => found.push(word),
    end: () => void found.push('end'),
  })
  for (const typed of ['c', 'x', 'mc', 'q', '\x03', '\x04']) terminal.emit('data', typed)
  assert.deepEqual(found, ['cut', 'mend', 'cut', 'end', 'end', 'end'])
  release()
  assert.deepEqual(terminal.said, ['raw true', 'utf8', 'raw false', 'paused'])
})
