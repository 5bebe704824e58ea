/** Interests that begin in one turn are accepted in one frame: a fleet that comes back subscribes to hundreds at once. */
import type { LinkFrame } from '../frames/frames.ts'
import type { HubEffect } from './session.ts'

type AcceptedEntry = Extract<LinkFrame, { readonly kind: 'accepted' }>['interests'][number]

/** Adds to the last effect where that is such a frame with room, so that nothing of another kind is passed on the way. */
export function sayAccepted(effects: HubEffect[], entry: AcceptedEntry, interestsMax: number): void {
  const last = effects.at(-1)
  if (last?.effect === 'send' && last.frame.kind === 'accepted' && last.frame.interests.length < interestsMax) {
    const interests = [...last.frame.interests, entry]
    effects[effects.length - 1] = { effect: 'send', frame: { kind: 'accepted', interests } }
  } else effects.push({ effect: 'send', frame: { kind: 'accepted', interests: [entry] } })
}
