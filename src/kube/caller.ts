/** Who asks, as an API server sees it: what authenticators find out, and authorizers, reviews and owners of fields go by. */
export type Caller = {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** Without any credential. */
export const anonymous: Caller = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] }
