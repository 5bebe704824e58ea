/**
 * What the API server refused with 401 has not been applied. Where files brought the credential, and bring another by now, it goes
 * up once more by that, with what is left of its time.
 */
import type { Clock } from '../base/clock.ts'
import type { Credential } from './credential.ts'
import type { FollowedProfile } from './followedprofile.ts'
import type { UpstreamRequest } from './upstream.ts'

/** A credential that files brought. */
export type OwnCredential = { readonly name: string; readonly credential: Credential }

type Parts<Way, Answer> = {
  readonly asked: UpstreamRequest
  readonly profile: Pick<FollowedProfile, 'isRenewed'>
  readonly clock: Clock
  readonly way: () => Way
  readonly send: (way: Way, asked: UpstreamRequest) => Promise<Answer>
  readonly mayRepeat: () => boolean
  /** Of an answer that is not handed on. */
  readonly leave: (answer: Answer) => unknown
}

export async function onceMore<
  Way extends { readonly own?: OwnCredential },
  Answer extends { readonly status: number },
>({ asked, profile, clock, way, send, mayRepeat, leave }: Parts<Way, Answer>): Promise<Answer> {
  const startedMs = clock.steady()
  const first = way()
  const answer = await send(first, asked)
  const { own } = first
  if (answer.status !== 401 || own === undefined) return answer
  const isRenewed = await profile.isRenewed(own.name, own.credential)
  const { signal, headMsMax } = asked
  if (!isRenewed || !mayRepeat() || signal?.aborted === true) return answer
  await leave(answer)
  if (headMsMax === undefined) return await send(way(), asked)
  const leftMs = Math.max(0, headMsMax - (clock.steady() - startedMs))
  return await send(way(), { ...asked, headMsMax: leftMs })
}
