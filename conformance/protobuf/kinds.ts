/**
 * Every kind that has a message, also those that are never stored (reviews, options, lists): written and read by the code that
 * kube-apiserver is made of, and by ours.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  decodeMessage,
  encodeMessage,
  type Message,
  messageOf,
  readEnvelope,
  wrap,
} from '../../src/kube/protobuf/protobuf.ts'
import { Coverage } from './cover.ts'
import { differ, type Found } from './golden.ts'
import type { Judge } from './judge.ts'
import { Maker, type Manner } from './objects.ts'

const manners: readonly Manner[] = ['full', 'some', 'odd']

export type Kind = { readonly apiVersion: string; readonly kind: string; readonly message: Message }

/** All that there are facts of; kinds of every group version are taken as those of the core. */
export async function allKinds(): Promise<Kind[]> {
  const file = join(import.meta.dirname, '..', '..', 'src', 'kube', 'protobuf', 'messages.txt')
  const [first = ''] = (await readFile(file, 'latin1')).split('\n\n')
  return first.split('\n').flatMap((line) => {
    const [version = '', ...entries] = line.split(' ')
    const apiVersion = version === '*' ? 'v1' : version
    return entries.flatMap((entry) => {
      const kind = entry.slice(0, entry.indexOf('='))
      const message = messageOf(apiVersion, kind)
      return message === undefined ? [] : [{ apiVersion, kind, message }]
    })
  })
}

export async function proveKinds(judge: Judge, found: Found, seeds: number): Promise<void> {
  const kinds = await allKinds()
  const coverage = new Coverage()
  let objects = 0
  for (let seed = 1; seed <= seeds; seed++) {
    for (const manner of manners) {
      for (const one of kinds) {
        // An event's object is a message of its own, in an envelope: see the watches.
        if (one.kind === 'WatchEvent') continue
        const object = new Maker(seed, manner).object(one.message, one, { name: 'one', namespace: 'some' })
        objects++
        found.count++
        coverage.see(one.message, object)
        await proveKind(judge, found, `${one.apiVersion} ${one.kind} (${manner}, seed ${seed})`, one, object)
      }
    }
  }
  const { fields, messages, unseen } = coverage.report(kinds.map(({ message }) => message))
  found.notes.push(
    `${objects} objects of ${kinds.length} kinds by the judge: ${fields - unseen.length} of ${fields} fields of ${messages} messages`,
    ...(unseen.length === 0 ? [] : [`fields not seen: ${unseen.join(' ')}`]),
  )
}

async function proveKind(judge: Judge, found: Found, what: string, kind: Kind, object: object): Promise<void> {
  const real = await judge.protobuf(Buffer.from(JSON.stringify(object)))
  if ('fault' in real) {
    found.faults.push(`${what}: the real one cannot write it: ${real.fault}`)
    return
  }
  const json = await judge.json(real.bytes)
  if ('fault' in json) {
    found.faults.push(`${what}: the real one cannot read it: ${json.fault}`)
    return
  }
  try {
    const read = decodeMessage(kind.message, readEnvelope(real.bytes).raw, kind)
    differ(found, `${what} read`, json.bytes, Buffer.concat([read, Buffer.from('\n')]))
    differ(found, `${what} written`, real.bytes, wrap(kind, encodeMessage(kind.message, json.bytes)))
    // As a client may write it, in another order and with more in it than Go would print.
    differ(
      found,
      `${what} written as made`,
      real.bytes,
      wrap(kind, encodeMessage(kind.message, Buffer.from(JSON.stringify(object)))),
    )
  } catch (error) {
    found.faults.push(`${what}: ${(error as Error).stack}`)
  }
}
