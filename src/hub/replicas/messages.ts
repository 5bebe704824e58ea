/** What replicas say, as text: whatever else comes is none of it. */
import { type HeldName, type ReplicaMessage, replicaLimits } from './replicas.ts'

/** As Kubernetes names nodes. */
const nameMax = 253
const sentenceMax = 1_024

export function encodeMessage(message: ReplicaMessage): string {
  return JSON.stringify(message)
}

/** Undefined: no replica says that. */
export function decodeMessage(text: string): ReplicaMessage | undefined {
  const said = parsed(text)
  const { say, id, hub, names, name, link, question, ageMs, sentence, isHandOver } = said
  if (say === 'hello' && isText(id, nameMax) && isText(hub, nameMax)) return { say, id, hub }
  if (say === 'held' && Array.isArray(names) && names.length <= replicaLimits.entriesMax && names.every(isHeld))
    return { say, names }
  if (say === 'gone' && isText(name, nameMax) && isCount(link)) return { say, name, link }
  if (say === 'probe' && isText(name, nameMax) && isCount(question)) return { say, name, question }
  if (say === 'probed' && isCount(question) && isCount(link) && isAge(ageMs)) return { say, question, link, ageMs }
  if (say === 'end' && isText(name, nameMax) && isCount(link) && isText(sentence, sentenceMax))
    // A replica of an earlier release says nothing of it, and means at once.
    return { say, name, link, sentence, isHandOver: isHandOver === true }
  return undefined
}

function isHeld(value: unknown): value is HeldName {
  const { name, link, issuedAtMs, from } = asRecord(value)
  return isText(name, nameMax) && isCount(link) && isAge(issuedAtMs) && isText(from, nameMax)
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return asRecord(JSON.parse(text))
  } catch {
    return {}
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

function isText(value: unknown, max: number): value is string {
  return typeof value === 'string' && value.length <= max
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isAge(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
