/** A hub's refusal of an interest, as one of the errors that every way to follow has. */
import { Busy, neverKept, Refused, TooLarge } from '../follow/follow.ts'
import type { InterestEffect } from './livelink.ts'

export function refusalOf({ reason, sentence, retryAfterMs }: Extract<InterestEffect, { effect: 'refused' }>): Error {
  switch (reason) {
    case 'forbidden':
    case 'identity':
      return new Refused(403, sentence)
    case 'unknown':
      return new Refused(404, sentence)
    case 'never':
      return new Refused(neverKept, sentence)
    case 'limit':
      return new TooLarge(sentence)
    default:
      return new Busy(sentence, retryAfterMs)
  }
}
