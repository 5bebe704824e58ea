/** An object of every kind with all of its fields, in both forms, as Kubernetes' own types write them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Message, messageOf } from './facts.ts'

export type Recorded = {
  readonly apiVersion: string
  readonly kind: string
  readonly message: Message
  readonly raw: Buffer
  readonly json: Buffer
}

export const recorded: readonly Recorded[] = readFileSync(join(import.meta.dirname, 'filled.recorded.txt'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => {
    const [, apiVersion = '', kind = '', raw = '', json = ''] = /^(\S+) (\S+) (\S*) (.*)$/.exec(line) ?? []
    return {
      apiVersion,
      kind,
      message: known(apiVersion, kind),
      raw: Buffer.from(raw, 'base64'),
      json: Buffer.from(json),
    }
  })

export function known(apiVersion: string, kind: string): Message {
  const message = messageOf(apiVersion, kind)
  if (message === undefined) throw new Error(`no message for ${apiVersion} ${kind}`)
  return message
}
