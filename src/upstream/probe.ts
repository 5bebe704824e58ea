/** One health probe of one address, and what its answer means. */
import type { Clock } from '../base/clock.ts'
import { requestHeaders } from './headers.ts'
import type { Sign } from './judgement.ts'
import type { UpstreamLimits } from './limits.ts'
import { Patience } from './patience.ts'
import { NotConnected, type Pool } from './pool.ts'
import { Unreachable, type UpstreamResponse } from './upstream.ts'
import { readWhole } from './whole.ts'

type Parts = {
  readonly pool: Pool
  readonly path: string
  readonly token: string | undefined
  readonly agent: string
  /** The name of the one that is on the way. */
  readonly proxy: string | undefined
  readonly clock: Clock
  readonly limits: UpstreamLimits
}

/** Never rejects. Waiting for a connection is no part of the round trip, but of the limit. */
export async function probe({ pool, path, token, agent, proxy, clock, limits }: Parts): Promise<Sign> {
  const startedMs = clock.steady()
  const patience = new Patience({ clock, headMsMax: limits.probeMsMax })
  try {
    await pool.ready(patience, true)
    const readyMs = clock.steady()
    const headers = requestHeaders({ headers: { accept: 'text/plain, */*' }, token, agent, bytes: 0 })
    const answer = await pool.ask({ method: 'GET', path, headers, body: undefined, patience }, true)
    const rttMs = clock.steady() - readyMs
    const text = (await readWhole(answer, limits.probeBytesMax).catch(() => Buffer.alloc(0))).toString()
    return signOf(answer.status, String(answer.headers['content-type'] ?? ''), text, rttMs)
  } catch (error) {
    const reason = error instanceof Unreachable ? error.message : 'the probe failed'
    const why = throughProxy(reason, proxy)
    const alive = patience.timedOut && pool.doubt(startedMs)
    return { kind: 'probe failed', why, certain: error instanceof NotConnected && error.certain, alive }
  } finally {
    patience.done()
  }
}

/** With the proxy that is on the way, where it does not name it already. */
export function throughProxy(why: string, proxy: string | undefined): string {
  return proxy === undefined || why.includes(proxy) ? why : `${why} (through the proxy ${proxy})`
}

/** Any answer of a live API server is good, also a refusal; what a load balancer says in its stead is not. */
export function signOf(status: number, contentType: string, text: string, rttMs: number): Sign {
  const failed = (why: string): Sign => ({ kind: 'probe failed', why, certain: true, alive: false })
  if (/^text\/html/i.test(contentType)) return failed(`a web page came instead of the API server's answer (${status})`)
  if (status === 401 || status === 403) {
    return {
      kind: 'probe answered',
      rttMs,
      note: `the API server answers, but refuses the edge's credential (${status})`,
      refusesEdge: status === 401,
    }
  }
  if (status === 200) return { kind: 'probe answered', rttMs }
  if (status >= 400 && status < 500)
    return { kind: 'probe answered', rttMs, note: `the API server answers (${status})` }
  const checks = [...text.matchAll(/^\[-\]([\w./-]+)/gm)].map((match) => match[1])
  if (checks.includes('shutdown')) return failed('the API server is shutting down')
  if (checks.length > 0) return failed(`the API server is not ready: ${checks.join(', ')}`)
  if (status === 502 || status === 503 || status === 504) return failed(`nobody behind the load balancer (${status})`)
  return failed(`the API server is not ready (${status})`)
}

/** The API server marks each answer with an audit id; one that has none, with these statuses, is a load balancer's. */
export function isBalancer({ status, headers }: UpstreamResponse): boolean {
  return (status === 502 || status === 503 || status === 504) && headers['audit-id'] === undefined
}
