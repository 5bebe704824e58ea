/**
 * What is measured: questions, each asked of us and of an alternative in the same run, because on a shared machine only
 * ratios and CPU time mean anything. A question returns figures; run.ts prints them beside their goals.
 */

import type { Load } from './load.ts'

export type Contestant =
  | 'ake'
  | 'ake serve'
  | 'ake plain'
  | 'nginx'
  | 'kube-apiserver'
  | 'node:sqlite'
  | 'bare relay'
  | 'without roles'
  | 'without the edge'
  | 'gzip'
  | 'JSON'
  | 'HTTP/2'
  | 'plain watch'
  | 'plain bootstrap'
  | 'WatchList'

/** PEM texts of the administrator's client certificate and of the authority that signed the server's. */
export type Credentials = { readonly ca: string; readonly cert: string; readonly key: string }

export type Address = {
  readonly url: string
  readonly tls: Credentials
  /** Of a caller who has no certificate: then that of `tls` is not shown. */
  readonly token?: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A serving process under measurement: one process, so that its CPU time and memory are the whole cost of serving. */
export type Target = Address & {
  readonly name: Contestant
  readonly pid: number
  /** The moment its process was started, by performance.now(). */
  readonly startedAt: number
  /** Ends it and starts it again with the objects it had; the address may change. */
  restart?(): Promise<Target>
  stop(): Promise<void>
}

/** Measured values by contestant, and what ours should be: in absolute terms, or as a multiple of `versus`. */
export type Figure = {
  readonly name: string
  readonly unit: string
  readonly measured: { readonly [name in Contestant]?: number }
  readonly versus?: Contestant
  readonly atMost?: number
  readonly atLeast?: number
}

/** What a question may use. Targets are started on first use and shared, all holding the same objects. */
export type Bench = {
  /** Of `ake`, `nginx`, `kube-apiserver` those that can run here, holding the pods of fixture.ts. */
  targets(...names: Contestant[]): Promise<readonly Target[]>
  /** The same as `targets`, each in a process that has done nothing yet: for measuring memory. */
  fresh(...names: Contestant[]): Promise<readonly Target[]>
  /** The bytes nginx serves at `path` are those that we answer to `like`, asked for with these headers. */
  mirror(path: string, like: string, headers?: Address['headers']): Promise<void>
  readonly load: Load
  readonly say: (line: string) => void
}

export type Question = {
  readonly name: string
  ask(bench: Bench): Promise<Figure[]>
  /** Whether a figure of an earlier run stays, which this run did not ask for; unless it is said, none does. */
  keeps?(earlier: Figure): boolean
}
