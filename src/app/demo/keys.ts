/** Keys of the terminal in which the demo runs. */
import type { ReadStream } from 'node:tty'
import type { SwitchWord } from './switch.ts'

/** What is read of a terminal. */
type Terminal = Pick<ReadStream, 'setRawMode' | 'setEncoding' | 'on' | 'pause'>

type Turned = { readonly turn: (word: SwitchWord) => unknown; readonly end: () => void }

/** Answers how to stop taking them. */
export function takeKeys(terminal: Terminal, { turn, end }: Turned): () => void {
  terminal.setRawMode(true).setEncoding('utf8')
  terminal.on('data', (typed: string) => {
    for (const key of typed) {
      if (key === 'c') turn('cut')
      else if (key === 'm') turn('mend')
      // Ctrl-C and Ctrl-D, which are no signals while keys are read one by one.
      else if (key === 'q' || key === '\x03' || key === '\x04') end()
    }
  })
  return () => void terminal.setRawMode(false).pause()
}
