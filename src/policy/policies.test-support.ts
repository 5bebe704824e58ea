/** Policies that make no sense, and some that do: what the definition in deploy/ refuses, and what the hub finds wrong with those that came past it. */

type Spec = Readonly<Record<string, unknown>>

const rule = { apiGroups: [''], resources: ['configmaps'] }
const site = 'node-restriction.kubernetes.io/site'
const expression = (more: object) => ({ nodes: { selector: { matchExpressions: [{ key: site, ...more }] } } })

/** By what is right about it. */
export const goodSpecs: Readonly<Record<string, Spec>> = {
  nothing: {},
  'every edge': { trust: true },
  names: { nodes: { names: ['edge-1', 'berlin-*', '*'] }, trust: false },
  labels: { nodes: { selector: { matchLabels: { [site]: 'berlin', 'node-role.kubernetes.io/edge': '' } } } },
  expressions: expression({ operator: 'In', values: ['a', 'b'] }),
  'an absent label': expression({ operator: 'DoesNotExist' }),
  'users and groups': { speakFor: [{ users: ['jane', 'ci-*'], groups: ['dev', 'system:*'] }, { groups: ['ops'] }] },
  interests: { interests: [{ apiGroups: ['', 'apps', '*'], resources: ['*'], namespaces: ['a*'], names: ['x', '*'] }] },
  'what is never mirrored': { neverMirrored: [rule, { ...rule, namespaces: ['vault'] }] },
  rates: { rates: { edgeRequestsPerSecond: 1, callerRequestsPerSecond: 100_000 } },
  'offline limits': { offline: { tokenAge: '1h30m', serveAge: '1.5h' } },
  'revoked names': { revoked: [{ name: 'edge-1', since: '2026-11-18T02:00:00Z' }] },
  'a time in small letters': { revoked: [{ name: 'edge-1', since: '2026-11-18t02:00:00z' }] },
}

/** By what is wrong with it: refused by the definition, in words that hold this, and faulty to the hub. */
export const badSpecs: Readonly<Record<string, readonly [Spec, says: RegExp]>> = {
  'a star in a name': [{ nodes: { names: ['a*b'] } }, /a "\*" may only be the last character/],
  'two stars': [{ nodes: { names: ['a**'] } }, /a "\*" may only be the last character/],
  'an empty name': [{ nodes: { names: [''] } }, /at least 1 char/],
  'no names': [{ nodes: { names: [] } }, /at least 1 item/],
  'a name that is a number': [{ nodes: { names: [7] } }, /must be of type string/],
  'nodes without a word of which': [{ nodes: {}, trust: true }, /at least 1 propert/],
  'nodes that are a list': [{ nodes: [] }, /must be of type object/],
  'a label that a node gives itself': [
    { nodes: { selector: { matchLabels: { site: 'a' } } } },
    /give itself such a label/,
  ],
  'such a label in an expression': [
    { nodes: { selector: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'Exists' }] } } },
    /give itself such a label/,
  ],
  'an operator of its own': [expression({ operator: 'Resembles', values: ['a'] }), /Unsupported value: "Resembles"/],
  'In of nothing': [expression({ operator: 'In' }), /In and NotIn need values/],
  'Exists with a value': [expression({ operator: 'Exists', values: ['a'] }), /In and NotIn need values/],
  'system:masters': [
    { speakFor: [{ users: ['jane'], groups: ['dev', 'system:masters'] }] },
    /nobody speaks for system:masters/,
  ],
  'nobody at all': [{ speakFor: [{}] }, /name users, groups or both/],
  'a star in a user': [{ speakFor: [{ users: ['*@example.com'] }] }, /a "\*" may only be the last character/],
  'a star in a group': [{ speakFor: [{ groups: ['d*v'] }] }, /a "\*" may only be the last character/],
  'a group that ends with a star': [{ interests: [{ ...rule, apiGroups: ['apps*'] }] }, /a group is written out/],
  'a resource that ends with a star': [
    { interests: [{ ...rule, resources: ['config*'] }] },
    /a resource is written out/,
  ],
  'a subresource': [{ interests: [{ ...rule, resources: ['pods/log'] }] }, /without a subresource/],
  'no resources': [{ interests: [{ apiGroups: [''] }] }, /resources: Required value/],
  'a star in a namespace': [{ neverMirrored: [{ ...rule, namespaces: ['*-vault'] }] }, /a "\*" may only be the last/],
  'a star in the name of an object': [{ interests: [{ ...rule, names: ['*x'] }] }, /a "\*" may only be the last/],
  'what is never mirrored without its group': [
    { neverMirrored: [{ resources: ['secrets'] }] },
    /apiGroups: Required value/,
  ],
  'a rate of nothing': [{ rates: { edgeRequestsPerSecond: 0 } }, /greater than or equal to 1/],
  'a rate below nothing': [{ rates: { callerRequestsPerSecond: -5 } }, /greater than or equal to 1/],
  'half a request': [{ rates: { callerRequestsPerSecond: 0.5 } }, /must be of type integer/],
  'an age without a unit': [{ offline: { tokenAge: '24' } }, /should match/],
  'an age in days': [{ offline: { serveAge: '7d' } }, /should match/],
  'an age of nothing': [{ offline: { serveAge: '0s' } }, /longer than nothing/],
  'an age that is negative': [{ offline: { tokenAge: '-1h' } }, /should match/],
  'a revocation without a time': [{ revoked: [{ name: 'edge-1' }] }, /since: Required value/],
  'a revocation since a word': [{ revoked: [{ name: 'edge-1', since: 'yesterday' }] }, /must be of type date-time/],
  'trust that is a word': [{ trust: 'yes' }, /must be of type boolean/],
}

/** What the definition cannot tell. */
export const pastSpecs: Readonly<Record<string, Spec>> = {
  'a label whose value is none': { nodes: { selector: { matchLabels: { [site]: 'a b' } } } },
  'a label without a name': { nodes: { selector: { matchLabels: { 'node-restriction.kubernetes.io/': 'a' } } } },
}
