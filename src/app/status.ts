/**
 * `ake status`: asks the edge that runs on a folder how it fares, as its administrator, and prints the answer for people
 * or as it came. What the edge tells is `StatusDocument`, served on /ake/status.
 */
import { request } from 'node:https'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { reasonOf, Unavailable, UsageError } from '../base/fault.ts'
import { humanDuration, parseTime } from '../kube/table/duration.ts'
import { readPrivateFile } from '../pki/privatefile.ts'
import type { StatusConfig } from './config.ts'

export type StatusDocument = {
  readonly upstream: {
    readonly state: 'reachable' | 'suspect' | 'unreachable'
    readonly why: string
    readonly since: string
    readonly servers: readonly { readonly url: string; readonly current: boolean; readonly why: string }[]
    /** The edge's own, in words. */
    readonly identity?: string
    readonly credentialExpires?: string
  }
  readonly cluster?: { readonly uid?: string; readonly other?: string; readonly changes: number }
  readonly interests: readonly {
    readonly resource: string
    readonly group: string
    readonly namespace?: string
    readonly labels?: string
    readonly fields?: string
    readonly state: 'synced' | 'syncing' | 'waiting' | 'refused' | 'failing' | 'tooLarge' | 'fed' | 'withdrawn'
    readonly why?: string
    readonly objects: number
    readonly bytes: number
    /** The resourceVersion up to which it is synced. */
    readonly resourceVersion: number
    /** Since the API server was last heard of it; absent if it never was. */
    readonly ageSeconds?: number
    readonly watchers: number
    readonly asked: string
    /** From the start, by option. */
    readonly standing?: boolean
  }[]
  /** How full it is; absent of an older edge. */
  readonly budget?: {
    readonly bytes: number
    readonly bytesMax: number
    readonly interests: number
    readonly interestsMax: number
  }
  readonly passedThrough: readonly { readonly resource: string; readonly group: string; readonly why: string }[]
  readonly store: {
    readonly healthy: boolean
    readonly historyBytes: number
    readonly bytesWritten: number
    /** What is lost or damaged, a sentence each. */
    readonly damage?: readonly string[]
  }
  readonly version: string
}

/** An edge answers from memory: one that takes longer than this is stuck. */
const answerMsMax = 5_000
/** Some hundred bytes for each interest: far more than an edge can hold. */
const answerBytesMax = 16 * 1024 * 1024

/** What to print. */
export async function status({ data, output }: StatusConfig, clock: Clock): Promise<string> {
  const path = join(data, 'admin.kubeconfig')
  const text = await readPrivateFile(path)
  if (text === undefined) {
    throw new UsageError(`${data} has no admin.kubeconfig, so no ake has run there: give its folder with --data`)
  }
  const access = await accessIn(text, path)
  const answer = await ask(access, data)
  if (answer.code === 404) {
    throw new Unavailable(`the ake on ${data} is not an edge: only "ake edge" has a status to tell`)
  }
  if (answer.code !== 200) {
    throw new Unavailable(`${access.server} refuses to tell its status (${answer.code}): another ake may listen there`)
  }
  const document = parsed(answer.text, access.server)
  return output === 'json' ? `${JSON.stringify(document, null, 2)}\n` : statusText(document, clock.now())
}

function parsed(text: string, server: string): StatusDocument {
  try {
    return JSON.parse(text) as StatusDocument
  } catch {
    throw new Unavailable(`${server} gives no answer that can be read: another server may listen there`)
  }
}

type ServerAccess = { readonly server: string; readonly ca: string; readonly cert: string; readonly key: string }

async function accessIn(text: string, path: string): Promise<ServerAccess> {
  const { load } = await import('js-yaml')
  try {
    // biome-ignore lint/suspicious/noExplicitAny: whatever is missing is said below
    const { clusters, users } = load(text) as any
    const { server, 'certificate-authority-data': ca } = clusters[0].cluster
    const { 'client-certificate-data': cert, 'client-key-data': key } = users[0].user
    const [caText, certText, keyText] = [ca, cert, key].map((one) => Buffer.from(one, 'base64').toString())
    return { server: new URL(server).origin, ca: caText as string, cert: certText as string, key: keyText as string }
  } catch {
    throw new UsageError(`${path} is not as ake wrote it: restart the ake of that folder, which writes it anew`)
  }
}

function ask({ server, ...credentials }: ServerAccess, data: string): Promise<{ code: number; text: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(answerMsMax)
    const asked = request(`${server}/ake/status`, { ...credentials, signal, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
        if (text.length > answerBytesMax) answer.destroy(new Error('the answer is too long'))
      })
      answer.on('end', () => resolve({ code: answer.statusCode ?? 0, text }))
      answer.on('error', fail)
    })
    const fail = (error: NodeJS.ErrnoException) => {
      const stopped = error.code === 'ECONNREFUSED'
      const why = signal.aborted ? `nothing within ${answerMsMax / 1000} s` : reasonOf(error)
      reject(
        new Unavailable(
          stopped
            ? `no ake runs on ${data}: start it with "ake edge"`
            : `${server} gives no answer (${why}): see its log`,
        ),
      )
    }
    asked.on('error', fail)
    asked.end()
  })
}

/** For people: what the edge mirrors and how it stands with its API server, ages and sizes as kubectl shows them. */
export function statusText(document: StatusDocument, nowMs: number): string {
  const { upstream, interests, passedThrough } = document
  const parts = [block(document, nowMs)]
  if (interests.length === 0) parts.push('Nothing is mirrored yet: nobody has asked, and no --mirror was given.\n')
  else parts.push(interestsTable(interests, nowMs))
  if (passedThrough.length > 0) {
    const rows = passedThrough.map((one) => [named(one), one.why])
    parts.push(
      `Passed through to the API server${upstream.state === 'reachable' ? '' : ', and so out of reach'}:\n${aligned([['RESOURCE', 'WHY'], ...rows])}`,
    )
  }
  return parts.join('\n')
}

function block({ upstream, cluster, store, budget, version }: StatusDocument, nowMs: number): string {
  const { state, why, servers, identity, credentialExpires } = upstream
  const expires = credentialExpires === undefined ? [] : [expiry(credentialExpires, nowMs)]
  const credential = [...(identity === undefined ? [] : [identity]), ...expires].join(', ')
  const rows: string[][] = [
    ['Version:', version],
    ['Upstream:', `${state} for ${ageOf(upstream.since, nowMs)}${why === '' ? '' : `: ${why}`}`],
    ...servers.map(({ url, current, why }, at) => {
      const notes = [...(current ? ['in use'] : []), ...(why === '' ? [] : [why])]
      return [at === 0 ? 'Servers:' : '', notes.length === 0 ? url : `${url} (${notes.join(', ')})`]
    }),
    ...(credential === '' ? [] : [['Identity:', credential]]),
    ...(cluster === undefined ? [] : [['Cluster:', clusterText(cluster)]]),
    [
      'Store:',
      `${store.healthy ? 'healthy' : 'THE DISK REFUSES WRITES'}, ${size(store.historyBytes)} of history, ${size(store.bytesWritten)} written`,
    ],
    ...(budget === undefined ? [] : [['Mirrored:', fullness(budget)]]),
    ...(store.damage ?? []).map((one, at) => [at === 0 ? 'Damage:' : '', one]),
  ]
  return aligned(rows)
}

function clusterText({ uid, other, changes }: NonNullable<StatusDocument['cluster']>): string {
  const begun = changes === 0 ? [] : ['the copy was begun anew for it since the start']
  return [uid ?? 'of unknown uid', ...begun, ...(other === undefined ? [] : [other])].join('; ')
}

function fullness({ bytes, bytesMax, interests, interestsMax }: NonNullable<StatusDocument['budget']>): string {
  return `${size(bytes)} of ${size(bytesMax)}, ${interests} of ${interestsMax} interests`
}

function interestsTable(interests: StatusDocument['interests'], nowMs: number): string {
  const head = [
    'RESOURCE',
    'NAMESPACE',
    'SELECTOR',
    'STATE',
    'OBJECTS',
    'SIZE',
    'VERSION',
    'HEARD',
    'ASKED',
    'WATCHERS',
  ]
  const rows = interests.map((one) => [
    named(one),
    one.namespace || '*',
    [one.labels, one.fields].filter(Boolean).join(' ') || '-',
    one.state,
    String(one.objects),
    size(one.bytes),
    String(one.resourceVersion),
    one.ageSeconds === undefined ? 'never' : humanDuration(one.ageSeconds * 1000),
    one.standing === true ? 'standing' : ageOf(one.asked, nowMs),
    String(one.watchers),
    one.why ?? '',
  ])
  return aligned([[...head, interests.some(({ why }) => why) ? 'WHY' : ''], ...rows])
}

/** `gateways.example.com`, as people write it. */
function named({ resource, group }: { readonly resource: string; readonly group: string }): string {
  return group === '' ? resource : `${resource}.${group}`
}

function ageOf(time: string, nowMs: number): string {
  const ms = parseTime(time)
  return ms === undefined ? '-' : humanDuration(nowMs - ms)
}

function expiry(time: string, nowMs: number): string {
  const ms = parseTime(time)
  if (ms === undefined) return 'of unknown expiry'
  return ms < nowMs ? `EXPIRED ${humanDuration(nowMs - ms)} ago` : `expires in ${humanDuration(ms - nowMs)}`
}

/** In the units the options take. */
function size(bytes: number): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti']
  let at = 0
  let value = bytes
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)}${units[at]}`
}

/** Columns as wide as their widest cell, three spaces between; none after the last. */
function aligned(rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map(printable))
  const columns = Math.max(0, ...shown.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, at) => Math.max(...shown.map((row) => row[at]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('   ')
  return shown.map((row) => `${line(row).trimEnd()}\n`).join('')
}

const cellCharactersMax = 200 // a line that can still be read

/** Selectors are what callers wrote: they must not speak to the terminal, nor fill it. */
function printable(cell: string): string {
  const plain = cell.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, '?')
  return plain.length > cellCharactersMax ? `${plain.slice(0, cellCharactersMax)}…` : plain
}
