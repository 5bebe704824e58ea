/** The subject about which a SubjectAccessReview asks, as it passes by. */
import type { Caller } from './caller.ts'
import { readReviewedSubject } from './protobuf/peek.ts'
import { isProtobuf, readEnvelope } from './protobuf/protobuf.ts'

export type ReviewedSubject = Pick<Caller, 'name' | 'groups'>

/** Undefined for what is none, or asks about no user. */
export function reviewedSubject(contentType: string | undefined, bytes: Buffer): ReviewedSubject | undefined {
  try {
    const { name, groups } = isProtobuf(contentType) ? readReviewedSubject(readEnvelope(bytes).raw) : inJson(bytes)
    return name === '' ? undefined : { name, groups }
  } catch {
    // The API server says what is wrong with it.
    return undefined
  }
}

function inJson(bytes: Buffer): ReviewedSubject {
  const { spec } = JSON.parse(bytes.toString('utf8')) as { spec?: { user?: unknown; groups?: unknown } }
  const groups = Array.isArray(spec?.groups) ? spec.groups.filter((one) => typeof one === 'string') : []
  return { name: typeof spec?.user === 'string' ? spec.user : '', groups }
}
