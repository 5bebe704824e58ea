/** Whether a refusal is what the API server really means, asked with the edge's own credential while it is ready. */
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import type { Interest } from '../mirror/interest.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { readWhole } from '../upstream/whole.ts'

const reviewMsMax = 5_000
const reviewBytesMax = 64 * 1024
const reviewsPath = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'

export function confirmRefusal(parts: { upstream: Upstream; catalog: CloudCatalog }) {
  const { upstream, catalog } = parts
  return async (interest: Interest, code: number): Promise<boolean> => {
    if (upstream.reachability.state !== 'reachable') return false
    if (code === 404) {
      return catalog.complete && catalog.find(interest.group, interest.version, interest.resource) === undefined
    }
    return code === 403 && (await reviewRead(interest, { upstream, by: 'edge' })) === 'denied'
  }
}

/** Who asks: through a hub the edge is its node, and its administrator may more where the hub trusts its edges. */
type Asker = { readonly upstream: Upstream; readonly by: 'edge' | 'administrator' }

/** Whether the edge itself may list what an interest asks for. */
export async function reviewRead(
  interest: Interest,
  { upstream, by }: Asker,
): Promise<'allowed' | 'denied' | 'unknown'> {
  const { group, version, resource, namespace, labels, fields } = interest
  const resourceAttributes = {
    verb: 'list',
    group,
    version,
    resource,
    namespace,
    ...(labels.empty ? {} : { labelSelector: { rawSelector: labels.toString() } }),
    ...(fields.empty ? {} : { fieldSelector: { rawSelector: fields.toString() } }),
  }
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  }
  const body = Buffer.from(JSON.stringify(review))
  const answer = await upstream.ask({
    method: 'POST',
    path: reviewsPath,
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
    body,
    identity: { kind: 'edge' },
    passedOn: by === 'administrator',
    headMsMax: reviewMsMax,
  })
  // A hub says so of itself: it does not stand for administrators of edges.
  if (answer.status === 403 && by === 'administrator') return 'denied'
  if (answer.status !== 201) return 'unknown'
  const { status } = JSON.parse((await readWhole(answer, reviewBytesMax)).toString()) as {
    status?: { allowed?: unknown; denied?: unknown; evaluationError?: unknown }
  }
  // An authorizer that failed has not said no.
  const failed = status?.denied !== true && (status?.evaluationError ?? '') !== ''
  if (status?.allowed === true) return 'allowed'
  return status?.allowed === false && !failed ? 'denied' : 'unknown'
}
