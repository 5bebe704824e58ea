/**
 * Credentials of callers as a link carries them, bearer tokens and client certificates: each is sent once, in a frame of its own, and
 * then named by its number. The side that sends chooses numbers, as many as the other takes, and gives that of the one that was
 * not used for longest to a new one; frames come in order, so both sides mean the same by a number. Both keep them in memory as
 * long as the link, in fields that nothing prints.
 *
 * A token proves its caller to each side that holds it. A certificate proves nothing by itself, since it is no secret: an edge that shows
 * one says that its caller had the key, and how far that word counts is the hub's to decide.
 */
import { LinkFault } from '../link/frames/bytes.ts'
import { credentialBytesMax } from './limits.ts'

/** A word that a later release adds is `other`, which is neither. */
type CredentialKind = 'token' | 'certificate' | 'other'

export type ShownCredential = { readonly kind: CredentialKind; readonly text: string }

/** What a stream is opened for, and with which credential, if any: one of both. */
export type StreamOpening = {
  readonly purpose: string
  readonly token?: string | undefined
  /** A chain of certificates (`chainText`). */
  readonly certificate?: string | undefined
  /** A caller waits for the first bytes of what comes back: the other side is asked for signs of life until then. */
  readonly isAwaited?: boolean
}

export function shownBy({ token, certificate }: StreamOpening): ShownCredential | undefined {
  if (token !== undefined) return { kind: 'token', text: token }
  return certificate === undefined ? undefined : { kind: 'certificate', text: certificate }
}

/** What a header can carry. Anything else could end the header that it becomes, and begin another. */
const bearable = /^[\x21-\x7e]+$/

export function isBearable(token: string): boolean {
  return token.length <= credentialBytesMax && bearable.test(token)
}

/** Certificates (DER), the caller's own first, then those between it and an authority: base64url, a dot between two. */
const chainForm = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){0,3}$/

export function isCarriedChain(text: string): boolean {
  return text.length <= credentialBytesMax && chainForm.test(text)
}

export function chainText(certificates: readonly Buffer[]): string {
  return certificates.map((one) => one.toString('base64url')).join('.')
}

/** A certificate that was shown, with those between it and an authority. It proves no caller before it was judged. */
export class CarriedCertificate {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  get chain(): readonly Buffer[] {
    return this.text.split('.').map((one) => Buffer.from(one, 'base64url'))
  }
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

/** By kind and text, the one used longest ago first. */
export class SentCredentials {
  readonly #numbers = new Map<string, number>()

  /** The number that stands for it from now on, and whether the other side has to be told so first. */
  use({ kind, text }: ShownCredential, max: number): { readonly number: number; readonly isNew: boolean } {
    const key = kind === 'token' ? text : `${kind} ${text}`
    const known = this.#numbers.get(key)
    const number = known ?? this.#free(max)
    this.#numbers.delete(key)
    this.#numbers.set(key, number)
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

/** What stands behind a number: at most one of both, none where it is of a kind that this release does not know. */
export type HeldCredential = {
  readonly token: CarriedToken | undefined
  readonly certificate: CarriedCertificate | undefined
}

export const noCredential: HeldCredential = { token: undefined, certificate: undefined }

export class HeldCredentials {
  readonly #max: number
  readonly #held = new Map<number, HeldCredential>()

  constructor(max: number) {
    this.#max = max
  }

  hold(number: number, { kind, text }: ShownCredential): void {
    if (number >= this.#max) throw new LinkFault(`a credential with the number ${number} where ${this.#max} are held`)
    if (kind === 'token' && !bearable.test(text)) throw new LinkFault('a credential that no header can carry')
    if (kind === 'certificate' && !chainForm.test(text)) throw new LinkFault('a certificate that is none')
    this.#held.set(number, {
      token: kind === 'token' ? new CarriedToken(text) : undefined,
      certificate: kind === 'certificate' ? new CarriedCertificate(text) : undefined,
    })
  }

  find(number: number): HeldCredential {
    const found = this.#held.get(number)
    if (found === undefined) throw new LinkFault(`a stream with the credential ${number}, which was not sent`)
    return found
  }

  forget(): void {
    this.#held.clear()
  }
}
