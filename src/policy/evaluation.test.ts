/** A generated table of questions: what policies say is what the written rule says, asked of an evaluator that knows nothing of this one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  independent,
  type RawCollection,
  type RawNode,
  type RawPolicy,
  type RawQuestion,
} from './independent.test-support.ts'
import { readPolicy } from './reading.ts'
import { applied, rulesBy } from './rules.ts'

const words = fc.constantFrom('a', 'ab', 'b', 'abc')
const patterns = fc.constantFrom('a', 'ab', 'b', 'a*', 'ab*', '*', 'c*')
const some = <Value>(one: fc.Arbitrary<Value>) => fc.uniqueArray(one, { minLength: 1, maxLength: 3 })
const maybe = <Value>(one: fc.Arbitrary<Value>) => fc.option(one, { nil: undefined })
const identities = fc.constantFrom('a', 'ab', 'b', 'system:a', 'system:masters', 'system:authenticated')
const identityPatterns = fc.constantFrom('a', 'a*', '*', 'b', 'system:*', 'system:a', 's*')
const label = 'node-restriction.kubernetes.io/x'

const collections = (hasNames: boolean): fc.Arbitrary<RawCollection> =>
  fc
    .record({
      apiGroups: some(fc.constantFrom('', 'g', '*')),
      resources: some(fc.constantFrom('r', 's', '*')),
      namespaces: maybe(some(patterns)),
      names: maybe(some(patterns)),
    })
    .map(({ apiGroups, resources, namespaces, names }) => ({
      ...{ apiGroups, resources },
      ...(namespaces === undefined ? {} : { namespaces }),
      ...(names === undefined || !hasNames ? {} : { names }),
    }))

const hours = fc.integer({ min: 1, max: 5 }).map((one) => `${one}h`)
const defined = (value: object) => JSON.parse(JSON.stringify(value)) as never

const policy: fc.Arbitrary<Omit<RawPolicy, 'name'>> = fc
  .record({
    isBroken: fc.integer({ min: 0, max: 4 }).map((one) => one === 0),
    hasBrokenNodes: fc.integer({ min: 0, max: 6 }).map((one) => one === 0),
    nodes: maybe(
      fc.record({ names: maybe(some(patterns)), labels: maybe(fc.record({ [label]: fc.constantFrom('1', '2') })) }),
    ),
    trust: maybe(fc.boolean()),
    speakFor: fc.array(
      fc.oneof(
        fc.record({ users: some(identityPatterns), groups: maybe(some(identityPatterns)) }),
        fc.record({ groups: some(identityPatterns) }),
      ),
      { maxLength: 2 },
    ),
    interests: fc.array(collections(true), { maxLength: 2 }),
    neverMirrored: fc.array(collections(false), { maxLength: 1 }),
    rates: fc.record({
      edgeRequestsPerSecond: maybe(fc.integer({ min: 1, max: 9 })),
      callerRequestsPerSecond: maybe(fc.integer({ min: 1, max: 9 })),
    }),
    offline: fc.record({ tokenAge: maybe(hours), serveAge: maybe(hours) }),
  })
  .map(defined)

const question: fc.Arbitrary<RawQuestion> = fc.oneof(
  fc.record({
    about: fc.constant('caller' as const),
    name: identities,
    groups: fc.uniqueArray(identities, { maxLength: 3 }),
  }),
  fc
    .record({
      about: fc.constantFrom('interest' as const, 'never' as const),
      group: fc.constantFrom('', 'g', 'h'),
      resource: fc.constantFrom('r', 's', 't'),
      namespace: fc.oneof(fc.constant(''), words),
      name: fc.oneof(fc.constant(''), words),
      isNamespaced: fc.boolean(),
    })
    // What is in no namespace is asked for in none; what is never mirrored is asked of collections.
    .map((asked) => ({
      ...asked,
      namespace: asked.isNamespaced ? asked.namespace : '',
      name: asked.about === 'never' ? '' : asked.name,
    })),
)

const node: fc.Arbitrary<RawNode> = fc.record({
  name: words,
  labels: fc.oneof(fc.constant({}), fc.record({ [label]: fc.constantFrom('1', '2', '3') })),
}) as never

/** As it would stand in the cluster. */
function written({ name, isBroken, hasBrokenNodes, nodes, speakFor, ...spec }: RawPolicy) {
  const selector = nodes?.labels === undefined ? undefined : { matchLabels: nodes.labels }
  const broken = [{ users: ['*x'] }, ...speakFor]
  const written = {
    ...spec,
    speakFor: isBroken ? broken : speakFor,
    nodes: hasBrokenNodes
      ? { ...nodes, labels: undefined, selector: { matchLabels: { own: 'label' } } }
      : nodes && (nodes.names ?? selector) !== undefined
        ? { names: nodes.names, selector }
        : undefined,
  }
  return readPolicy(JSON.stringify({ metadata: { name }, spec: written }))
}

test('whatever policies there are and whatever is asked, the written rule is what counts', () => {
  const counts = { asked: 0, yes: 0 }
  const property = fc.property(
    fc.array(policy, { maxLength: 4 }),
    node,
    fc.array(question, { minLength: 10, maxLength: 10 }),
    (raw, asker, questions) => {
      const policies = raw.map((one, at): RawPolicy => ({ ...one, name: `p${at}` }))
      const read = policies.map(written)
      for (const [at, { faults }] of read.entries())
        assert.equal(faults.length > 0, policies[at]?.isBroken || policies[at]?.hasBrokenNodes, faults.join())
      const labels = new Map(Object.entries(asker.labels))
      // In whatever order they come.
      const rules = rulesBy(applied(read.toReversed(), { name: asker.name, labels }))
      const other = independent(policies, asker)
      assert.equal(rules.trusts, other.trusts)
      const { edgePerSecond, callerPerSecond, tokenAgeMs, serveAgeMs } = other
      assert.deepEqual(
        { ...rules.rates, ...rules.offline },
        defined({ edgePerSecond, callerPerSecond, tokenAgeMs, serveAgeMs }),
      )
      for (const one of questions) {
        const { yes, by } =
          one.about === 'caller'
            ? rules.speaksFor({ ...one, uid: '' })
            : one.about === 'interest'
              ? rules.holds(one)
              : rules.isNeverMirrored(one)
        assert.equal(yes, other.answer(one), `${JSON.stringify(one)}: ${by}`)
        if (yes) assert.match(by, /^policy\/p\d spec\.(speakFor|interests|neverMirrored)\[\d\]$/)
        counts.asked++
        if (yes) counts.yes++
      }
    },
  )
  fc.assert(property, { numRuns: 2_000 })
  // The table has both kinds of answers.
  assert.ok(counts.yes > counts.asked / 20 && counts.yes < counts.asked / 2, JSON.stringify(counts))
})
