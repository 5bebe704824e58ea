/** What health checks say of the API server: it never makes an edge unready, and is told where it is of no use. */
import type { Check } from '../endpoint/documents/health.ts'
import type { Contact } from '../mirror/contact.ts'
import { answersWell, type Reachability } from '../upstream/upstream.ts'
import { sinceMsOf } from './statusdocument.ts'

export function upstreamCheck(reachability: Reachability, contact: Contact): Check {
  const sentence = () => {
    const { state, why } = reachability
    return `${state} since ${new Date(sinceMsOf(reachability, contact)).toISOString()}, ${why}`
  }
  // One that answers and refuses the edge's credential is there, and of no use to it.
  const isWell = () => reachability.state === 'reachable' && reachability.why === answersWell
  return {
    name: 'upstream',
    ready: true,
    run: () => undefined,
    note: sentence,
    warning: () => (isWell() ? undefined : sentence()),
  }
}
