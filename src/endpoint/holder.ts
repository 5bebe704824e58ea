/** Who holds what is scarce: for whom a place, a turn or memory counts (`shares`). */

/** What speaks for a caller. */
type Standing =
  /** A certificate of our own: the machine's administrator. */
  | 'own'
  /** A certificate of an authority we were told to trust, or a token that the API server accepts. */
  | 'known'
  /** No certificate nor the API server has vouched for it yet: all of them together are one holder. */
  | 'stranger'

export type Holder = {
  readonly standing: Standing
  /** Equal for everything that one caller holds. */
  readonly name: string
}

export const strangers: Holder = { standing: 'stranger', name: '' }
