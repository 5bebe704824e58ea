/**
 * Who asks for what: reads by callers who may, who may a little, and who may not. The API server's own answer to the same
 * caller is the expectation, also while it is away.
 */
import { nodes, widgets } from './objects.ts'

export type RightsCase = {
  readonly who: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** What an edge cannot know by itself; while the cloud is away it says so by 503, unless it refuses. */
  readonly beyond?: true
}

const a = '/api/v1/namespaces/rights-a'
const b = '/api/v1/namespaces/rights-b'
const any = 'resourceVersion=0'
const of = (selector: string) => `fieldSelector=${encodeURIComponent(selector)}`
const mine = of(`spec.nodeName=${nodes[0]}`)
const theirs = of(`spec.nodeName=${nodes[1]}`)

const node: readonly string[] = [
  `/api/v1/pods?${mine}`,
  `/api/v1/pods?${mine}&${any}`,
  `/api/v1/pods?${of(`spec.nodeName==${nodes[0]}`)}&${any}`,
  `/api/v1/pods?watch=1&${mine}&${any}`,
  `/api/v1/pods?${any}`,
  '/api/v1/pods',
  `/api/v1/pods?watch=1&${any}`,
  `/api/v1/pods?${theirs}&${any}`,
  `/api/v1/pods?watch=1&${theirs}`,
  `/api/v1/pods?${of(`spec.nodeName!=${nodes[0]}`)}&${any}`,
  `/api/v1/pods?${of(`spec.nodeName=${nodes[0]},spec.nodeName=${nodes[1]}`)}&${any}`,
  `/api/v1/pods?${of(`metadata.name=p2`)}&${any}`,
  `/api/v1/pods?${of('spec.nodeName=')}&${any}`,
  `/api/v1/pods?fieldSelector=%3D%3D&${any}`,
  `${a}/pods?${any}`,
  `${a}/pods?${mine}&${any}`,
  `${a}/pods/p1`,
  `${a}/pods/p2`,
  `${a}/pods/p1?${any}`,
  `${a}/pods/p2?${any}`,
  `${a}/secrets/s1`,
  `${a}/secrets/s1?${any}`,
  `${a}/secrets/s2`,
  `${a}/secrets/s2?${any}`,
  `${a}/secrets/none?${any}`,
  `${a}/secrets?${any}`,
  `/api/v1/secrets?${any}`,
  `${a}/secrets?${of('metadata.name=s1')}&${any}`,
  `${a}/secrets?watch=1&${of('metadata.name=s1')}&${any}`,
  `${a}/secrets?${of('metadata.name=s2')}&${any}`,
  `${a}/secrets?watch=1&${of('metadata.name=s2')}`,
  `${a}/configmaps?watch=1&${of('metadata.name=c1')}&${any}`,
  `${a}/configmaps?watch=1&${of('metadata.name=c2')}&${any}`,
  `${a}/configmaps/c2?${any}`,
  `/api/v1/nodes/${nodes[0]}?${any}`,
  `/api/v1/nodes/${nodes[1]}?${any}`,
  `/api/v1/nodes?${of(`metadata.name=${nodes[0]}`)}&${any}`,
  `/api/v1/nodes?${of(`metadata.name=${nodes[1]}`)}&${any}`,
  `/api/v1/services?${any}`,
]

const reader: readonly string[] = [
  `${a}/configmaps?${any}`,
  `${a}/configmaps`,
  `${a}/configmaps/c1`,
  `${a}/configmaps/c1?${any}`,
  `${a}/configmaps/none?${any}`,
  `${a}/configmaps?watch=1&${any}`,
  `${a}/configmaps?labelSelector=no%3Dwhere&${any}`,
  `${a}/configmaps?${of('metadata.name=c1')}&${any}`,
  `/api/v1/watch/namespaces/rights-a/configmaps?${any}`,
  `/api/v1/configmaps?${any}`,
  `/api/v1/configmaps?watch=1&${any}`,
  `/api/v1/configmaps?${of('metadata.namespace=rights-a')}&${any}`,
  `${b}/configmaps?${any}`,
  `${b}/configmaps/elsewhere?${any}`,
  `${a}/pods?${any}`,
  `${a}/pods/p1/status?${any}`,
  `${a}/secrets/s1?${any}`,
  `${a}/secrets?${any}`,
  `${a}/serviceaccounts/robot?${any}`,
  `/api/v1/namespaces/rights-a?${any}`,
  `/api/v1/namespaces?${any}`,
  `${a}/configmaps/?${any}`,
  `${a}/configmaps/c1/?${any}`,
  `/api/v1/namespaces/rights%2Da/configmaps?${any}`,
  `/version`,
  `/api`,
  `/apis/apps/v1`,
]

const named: readonly string[] = [
  `${a}/configmaps/c1?${any}`,
  `${a}/configmaps/c2?${any}`,
  `${a}/configmaps?${any}`,
  `${a}/configmaps?${of('metadata.name=c1')}&${any}`,
  `${a}/configmaps?watch=1&${of('metadata.name=c1')}&${any}`,
  `${a}/configmaps?${of('metadata.name=c2')}&${any}`,
  `${a}/configmaps?watch=1&${of('metadata.name=c2')}`,
  `${a}/configmaps?${of('metadata.name!=c1')}&${any}`,
  `${a}/configmaps?${of('metadata.name=c1,metadata.name=c2')}&${any}`,
  `${a}/configmaps?${of('metadata.name=c2,metadata.name=c1')}&${any}`,
]

/** What a caller who is owed none of it asks for; strong callers have had all of it mirrored before. */
const coveted: readonly string[] = [
  `${a}/configmaps?${any}`,
  `${a}/configmaps`,
  `${a}/configmaps/c1`,
  `${a}/configmaps/c1?${any}`,
  `${a}/configmaps/none?${any}`,
  `${a}/configmaps?watch=1&${any}`,
  `${a}/configmaps?watch=1&${any}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
  `${a}/secrets/s1`,
  `${a}/secrets/s1?${any}`,
  `/api/v1/secrets?${any}`,
  `/api/v1/pods?${mine}&${any}`,
  `/api/v1/nodes/${nodes[0]}?${any}`,
  `/version`,
  `/api`,
  `/apis`,
]

/** Another node, whose certificate no credential goes with: what it may read, and what only the first one may. */
const unmapped: readonly string[] = [
  `/api/v1/pods?${theirs}&${any}`,
  `/api/v1/pods?watch=1&${theirs}&${any}`,
  `/api/v1/nodes/${nodes[1]}?${any}`,
  `/api/v1/nodes/${nodes[1]}`,
  `/api/v1/pods?${mine}&${any}`,
  `/api/v1/pods?${any}`,
  `${a}/secrets/s1?${any}`,
  `${a}/secrets?${any}`,
]

/** Names under which others take a caller for the kubelet, and headers by which a front proxy would vouch for one. */
const disguises: readonly RightsCase[] = [
  { who: 'nobody', path: `${a}/secrets/s1?${any}`, headers: { 'user-agent': 'kubelet/v1.36.3' } },
  { who: 'anonymous', path: `${a}/secrets/s1?${any}`, headers: { 'user-agent': 'kubelet/v1.36.3' } },
  { who: 'anonymous', path: `/api/v1/pods?${mine}&${any}`, headers: { 'user-agent': '../kubelet' } },
  {
    who: 'anonymous',
    path: `${a}/secrets/s1?${any}`,
    headers: { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' },
  },
  { who: 'nobody', path: `${a}/secrets/s1`, headers: { 'impersonate-user': 'system:admin' }, beyond: true },
  {
    who: 'reader',
    path: `${a}/configmaps?${any}`,
    headers: { 'impersonate-user': 'system:serviceaccount:rights-a:reader' },
    beyond: true,
  },
  { who: 'reader', path: `${a}/configmaps?${any}`, headers: { 'impersonate-group': 'system:masters' }, beyond: true },
  { who: 'reader', path: `${a}/configmaps?${any}`, headers: { 'impersonate-extra-a': 'b' }, beyond: true },
]

const each = (who: string, paths: readonly string[]): RightsCase[] => paths.map((path) => ({ who, path }))

export const rightsCases: readonly RightsCase[] = [
  ...each('node', node),
  ...each('reader', reader),
  ...each('named', named),
  ...each('unmapped', unmapped),
  ...['nobody', 'other', 'anonymous', 'invented', 'nonsense'].flatMap((who) => each(who, coveted)),
  { who: 'other', path: `${b}/configmaps?${any}` },
  { who: 'other', path: `${b}/configmaps/elsewhere?${any}` },
  ...disguises,
  // The edge has no role for these: a caller that may read them gets them from the API server.
  { who: 'reader', path: `${widgets}?${any}`, beyond: true },
  { who: 'reader', path: `${widgets}/w1?${any}`, beyond: true },
  { who: 'reader', path: `${widgets}?watch=1&${any}`, beyond: true },
  { who: 'nobody', path: `${widgets}?${any}` },
  { who: 'reader', path: `${b}/../rights-b/configmaps?${any}`, beyond: true },
]

/** What the machine's administrator reads first, so that everything coveted is held. */
export const strongReads: readonly string[] = [
  `/api/v1/pods?${any}`,
  `/api/v1/secrets?${any}`,
  `/api/v1/configmaps?${any}`,
  `/api/v1/nodes?${any}`,
  `/api/v1/services?${any}`,
]
