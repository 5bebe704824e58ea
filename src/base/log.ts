/**
 * The log: one line per event, an event name and its fields, `time level event key=value`. It goes to stderr, so that
 * stdout stays what a command was asked for. Logging never throws and never shows a credential.
 */
import { writeSync } from 'node:fs'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>

export interface Log {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
  /** The same log with these fields on every line. */
  with(fields: LogFields): Log
}

type Parts = { level: LogLevel; write?: (line: string) => void; now?: () => number; fields?: LogFields }

export function createLog({ level, write = writeStderr, now = Date.now, fields = {} }: Parts): Log {
  const lowest = logLevels.indexOf(level)
  const at = (lineLevel: LogLevel) => (event: string, more?: LogFields) => {
    if (logLevels.indexOf(lineLevel) < lowest) return
    try {
      write(`${new Date(now()).toISOString()} ${lineLevel} ${event}${text({ ...fields, ...more })}\n`)
    } catch {
      // A closed terminal or a full disk behind stderr must not take the server down.
    }
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (more) => createLog({ level, write, now, fields: { ...fields, ...more } }),
  }
}

/** For tests and for parts that run without an operator. */
export const silentLog: Log = createLog({ level: 'error', write: () => {} })

/** Not by process.stderr: that one tells of a full disk by an event without a listener, which ends the process. */
function writeStderr(line: string): void {
  writeSync(2, line)
}

// A field is redacted by its name: `token`, `bearerToken`, `tls_key`, `client-key`, but not `key` alone, the storage key.
const secretNames = /token|authorization|password|passwd|secret|credential|cookie|bearer|.[-_]key$/i
const secretCamelNames = /[a-z]Key$/
const valueCharsMax = 2048 // a line stays readable, and a hostile header cannot fill the disk

function text(fields: LogFields): string {
  let out = ''
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) out += ` ${name}=${isSecret(name) ? '<redacted>' : quoted(String(value))}`
  }
  return out
}

function isSecret(name: string): boolean {
  return secretNames.test(name) || secretCamelNames.test(name)
}

function quoted(value: string): string {
  const short = value.length > valueCharsMax ? `${value.slice(0, valueCharsMax)}…` : value
  // Control characters are escaped too: a client must not be able to forge a line.
  return /^[^\s"=\\\x00-\x1f\x7f-\x9f\u2028\u2029]+$/.test(short) ? short : escaped(short)
}

function escaped(value: string): string {
  return JSON.stringify(value).replace(
    /[\x7f-\x9f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
