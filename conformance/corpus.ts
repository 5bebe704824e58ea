/**
 * What the corpus is made of: groups of cases that run in order against both servers, each group in a namespace of its
 * own. Both get the same bytes, except that `<name>` stands for what an earlier case took from that server's own answer.
 */

export type Case = {
  /** Unique in its group; the full name is `group/name`. */
  readonly name: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** A string or bytes go as they are, anything else as JSON. */
  readonly body?: unknown
  /** Variable → path in the answer's JSON (or `header.etag`), kept for the cases that follow. */
  readonly take?: Readonly<Record<string, string>>
  readonly watch?: Watching
  /** Asked again until each server's answer satisfies it; not compared. What kube-apiserver does a moment later, is waited for. */
  readonly until?: (body: string) => boolean
  /** Sent without the administrator's certificate. */
  readonly anonymous?: boolean
}

export type Watching = {
  /** What is written once the stream is open; these are cases of their own. */
  readonly during: readonly Case[]
  /** The stream is left after so many frames; without it, when the server ends it. */
  readonly frames?: number
}

export type Group = {
  readonly name: string
  /** Made before the group begins, with the `default` ServiceAccount that pods need; the group's name if not given. */
  readonly namespaces?: readonly string[]
  readonly cases: readonly Case[]
}

type More = Partial<Pick<Case, 'headers' | 'take' | 'anonymous'>>
type Headers = Readonly<Record<string, string>>

const jsonBody: Headers = { 'content-type': 'application/json' }

export const get = (name: string, path: string, headers: Headers = {}, more: More = {}): Case => ({
  name,
  method: 'GET',
  path,
  ...more,
  headers,
})

/** A GET whose only speciality is what it accepts. */
export const getAs = (name: string, path: string, accept: string): Case => get(name, path, { accept })

export const head = (name: string, path: string, headers: Headers = {}): Case => ({
  name,
  method: 'HEAD',
  path,
  headers,
})

export const send = (method: string, name: string, path: string, body: unknown, more: More = {}): Case => ({
  name,
  method,
  path,
  ...(body === undefined ? {} : { body }),
  ...more,
  headers: { ...(body === undefined ? {} : jsonBody), ...more.headers },
})

export const post = (name: string, path: string, body: unknown, more: More = {}): Case =>
  send('POST', name, path, body, more)

export const put = (name: string, path: string, body: unknown, more: More = {}): Case =>
  send('PUT', name, path, body, more)

export const del = (name: string, path: string, body?: unknown, more: More = {}): Case =>
  send('DELETE', name, path, body, more)

const patchMedia = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

export const patch = (
  kind: keyof typeof patchMedia,
  name: string,
  path: string,
  body: unknown,
  more: More = {},
): Case => send('PATCH', name, path, body, { ...more, headers: { ...more.headers, 'content-type': patchMedia[kind] } })

/** Opens the stream, runs `during`, and compares frame by frame. */
export const watch = (
  name: string,
  path: string,
  during: readonly Case[],
  { frames, headers = {} }: { frames?: number; headers?: Headers } = {},
): Case => ({ name, method: 'GET', path, headers, watch: { during, ...(frames === undefined ? {} : { frames }) } })

export const until = (name: string, path: string, satisfied: (body: string) => boolean): Case => ({
  ...get(name, path),
  until: satisfied,
})

/** A definition's conditions come a little later than the definition. */
export const established = (body: string): boolean => {
  const { status } = JSON.parse(body) as { status?: { conditions?: { type: string; status: string }[] } }
  return status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false
}
