/**
 * Which frame may come in which state, complete: what is not named here closes the link. Whether a frame that may come also
 * fits (its numbers, its interest) is the affair of the side that takes it.
 */
import type { LinkFrame } from '../frames/frames.ts'

/** `greeting`: hello, or the answer to it, has not come. `leaving`: the hub has asked the edge to move. */
export const sessionStates = ['greeting', 'open', 'leaving', 'closed'] as const
export type SessionState = (typeof sessionStates)[number]

type Kinds = readonly LinkFrame['kind'][]

const fromEdge: Kinds = ['refused', 'subscribe', 'unsubscribe', 'acknowledge', 'compare', 'ping', 'pong', 'tunnel']
const fromHub: Kinds = [
  ...(['refused', 'accepted', 'block', 'complete', 'events', 'progress', 'compared', 'lost'] as const),
  ...(['ping', 'pong', 'drain', 'terms', 'documents', 'tunnel'] as const),
]

/** What the hub takes. */
export const hubTakes: { readonly [State in SessionState]: Kinds } = {
  greeting: ['hello', 'refused'],
  open: fromEdge,
  leaving: fromEdge,
  closed: [],
}

/** What the edge takes. A hub that has asked may ask again, for less time. */
export const edgeTakes: { readonly [State in SessionState]: Kinds } = {
  greeting: ['welcome', 'refused'],
  open: fromHub,
  leaving: fromHub,
  closed: [],
}
