/**
 * Bearer tokens as a link carries them: each is sent once, in a frame of its own, and then named by its number. The side that
 * sends chooses numbers, as many as the other takes, and gives that of the token that was not used for longest to a new one;
 * frames come in order, so both sides mean the same by a number. Both keep them in memory as long as the link, in fields that
 * nothing prints.
 */
import { LinkFault } from '../link/frames/bytes.ts'
import { credentialBytesMax } from './limits.ts'

/** What a header can carry. Anything else could end the header that it becomes, and begin another. */
const bearable = /^[\x21-\x7e]+$/

export function isBearable(token: string): boolean {
  return token.length <= credentialBytesMax && bearable.test(token)
}

/** A token on its way to the request that bears it: printing what holds one prints no token. */
export class CarriedToken {
  readonly #token: string

  constructor(token: string) {
    this.#token = token
  }

  tell(): string {
    return this.#token
  }
}

/** By token, the one used longest ago first. */
export class SentCredentials {
  readonly #numbers = new Map<string, number>()

  /** The number that stands for the token from now on, and whether the other side has to be told so first. */
  use(token: string, max: number): { readonly number: number; readonly isNew: boolean } {
    const known = this.#numbers.get(token)
    const number = known ?? this.#free(max)
    this.#numbers.delete(token)
    this.#numbers.set(token, number)
    return { number, isNew: known === undefined }
  }

  #free(max: number): number {
    if (this.#numbers.size < max) return this.#numbers.size
    const [oldest] = this.#numbers
    if (oldest === undefined) throw new LinkFault('the other side takes no credentials')
    this.#numbers.delete(oldest[0])
    return oldest[1]
  }

  forget(): void {
    this.#numbers.clear()
  }
}

export class HeldCredentials {
  readonly #max: number
  readonly #tokens = new Map<number, CarriedToken>()

  constructor(max: number) {
    this.#max = max
  }

  hold(number: number, token: string): void {
    if (number >= this.#max) throw new LinkFault(`a credential with the number ${number} where ${this.#max} are held`)
    if (!bearable.test(token)) throw new LinkFault('a credential that no header can carry')
    this.#tokens.set(number, new CarriedToken(token))
  }

  find(number: number): CarriedToken {
    const found = this.#tokens.get(number)
    if (found === undefined) throw new LinkFault(`a stream with the credential ${number}, which was not sent`)
    return found
  }

  forget(): void {
    this.#tokens.clear()
  }
}
