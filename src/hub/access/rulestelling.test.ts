/** What an edge hears of its callers' rules, over a link between a real session of it and the hub. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openBench } from '../../access/access.test-support.ts'
import type { OpenAccess } from '../../access/open.ts'
import { makeQuestion } from '../../access/question.ts'
import { Rbac } from '../../access/rbac/rbac.ts'
import { readSubjectRules } from '../../access/rbac/subjectrules.ts'
import type { Caller } from '../../kube/caller.ts'
import { encodeMessage, type Message, messageOf, wrap } from '../../kube/protobuf/protobuf.ts'
import type { TunnelDuplex } from '../../tunnel/duplex.ts'
import { encodeRulesQuestion, rulesPurpose } from '../../tunnel/rules/rules.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import { LinkedRules } from '../../upstream/linked/linkedrules.ts'
import type { LiveLink } from '../../upstream/linked/livelink.ts'
import type { Identity } from '../../upstream/upstream.ts'
import { nowMs, shownBy, TestAuthority } from '../callers/certificates.test-support.ts'
import { CallerCertificates } from '../callers/certificates.ts'
import { ReviewedSubjects } from '../callers/reviewedsubjects.ts'
import type { RulesLimits } from '../callers/ruleslimits.ts'
import { HubWorld } from '../peers/hub.test-support.ts'
import { RulesTelling } from './rulestelling.ts'

const ann: Caller = { name: 'ann', uid: 'u', groups: ['devs', 'system:authenticated'] }
const cluster = new TestAuthority('kubernetes')

async function opened(limits: Partial<RulesLimits> = {}, kept?: OpenAccess['rules']) {
  const rbac = new Rbac()
  const listeners = new Set<() => void>()
  const roles = {
    rbac: rbac as Rbac | undefined,
    isCurrent: () => hub.isCurrent,
    observe: (changed: () => void) => {
      listeners.add(changed)
      return () => void listeners.delete(changed)
    },
  }
  const hub = { isCurrent: true }
  const tokens = new Map<string, Caller | 'refused' | 'unknown'>([['token-of-ann', ann]])
  const reviewed = new ReviewedSubjects()
  const recheckCaller: OpenAccess['recheckCaller'] = async (identity) =>
    (identity.kind === 'token' ? tokens.get(identity.token) : undefined) ?? 'refused'
  const certificates = new CallerCertificates({
    authorities: () => [cluster.certificate],
    clock: { now: () => wall.ms },
  })
  const wall = { ms: nowMs }
  const refuse = ({ stream }: IncomingStream) => stream.giveUp('unknown', 'not taken here')
  const links: object[] = []
  let told: RulesTelling | undefined
  const world = await HubWorld.open({
    accept: (edge) => {
      if (!links.includes(edge)) links.push(edge)
      told ??= new RulesTelling({
        roles,
        recheckCaller,
        certificates,
        reviewed,
        clock: world.mirror.server.clock,
        limits,
      })
      return told.acceptFor(edge, refuse)
    },
  })
  const { clock } = world.mirror.server
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  const ending = new AbortController()
  const heard: { caller: Pick<Caller, 'name' | 'groups'>; text: string | undefined; heardAt: () => number }[] = []
  const live = {
    streams: edge.streams,
    welcome: { trustsEdges: false },
    get heardAt() {
      return clock.steady()
    },
  } as unknown as LiveLink
  const linkListeners = new Set<() => void>()
  const link = {
    current: live as LiveLink | undefined,
    observe: (listener: () => void) => {
      linkListeners.add(listener)
      return () => void linkListeners.delete(listener)
    },
    become(next: LiveLink | undefined) {
      link.current = next
      for (const listener of linkListeners) listener()
    },
  }
  const news: string[] = []
  const written = { until: Promise.resolve() }
  const linked = new LinkedRules({
    link,
    clock,
    rules: {
      told: (caller, text, heardAt) => {
        heard.push({ caller, text, heardAt })
        kept?.told(caller, text, heardAt)
      },
      stands: async (caller, one) => {
        if (news.at(-1) !== `${caller.name} ${one}`) news.push(`${caller.name} ${one}`)
        await kept?.stands(caller, one)
        await written.until
      },
    },
  })
  const bind = (name: string, subject: object) => {
    rbac.put(
      'clusterroles',
      name,
      Buffer.from(JSON.stringify({ rules: [{ verbs: ['get'], apiGroups: [''], resources: [name] }] })),
    )
    rbac.put(
      'clusterrolebindings',
      name,
      Buffer.from(JSON.stringify({ roleRef: { kind: 'ClusterRole', name }, subjects: [subject] })),
    )
    for (const changed of listeners) changed()
  }
  const running = { begin: () => void told?.run(ending.signal) }
  const token: Identity = { kind: 'token', token: 'token-of-ann' }
  const may = (text: string | undefined, caller: Caller, resource: string) =>
    readSubjectRules(text ?? '')?.judge(caller, {
      verb: 'get',
      group: '',
      resource,
      subresource: '',
      namespace: '',
      name: '',
      path: '',
    })
  return {
    ...{ world, edge, rbac, roles, hub, tokens, reviewed, linked, link, heard, bind, token, may, links, running, wall },
    ...{ news, written, live, ending: ending.signal },
    told: () => told as RulesTelling,
    async [Symbol.asyncDispose]() {
      ending.abort()
      await world[Symbol.asyncDispose]()
    },
  }
}

test('[L29] the rules of a caller whose credential was shown are told, and again whenever they change, in its own part alone', async () => {
  await using it = await opened()
  const { world, linked, heard, bind, token, may } = it
  bind('pods', { kind: 'Group', name: 'devs' })
  bind('secrets', { kind: 'User', name: 'somebody-else' })
  linked.seen(token, ann)
  await world.until(() => heard.length === 1)
  it.running.begin()
  const [first] = heard
  assert.deepEqual(first?.caller, { name: 'ann', groups: ann.groups })
  const reason = 'RBAC: allowed by ClusterRoleBinding "pods" of ClusterRole "pods" to Group "devs"'
  assert.deepEqual(may(first?.text, ann, 'pods'), { allowed: true, reason })
  assert.equal(first?.text?.includes('secrets'), false)
  // What is another caller's does not travel.
  bind('services', { kind: 'User', name: 'somebody-else' })
  await world.pass(1_000)
  assert.equal(heard.length, 1)
  bind('nodes', { kind: 'User', name: 'ann' })
  bind('leases', { kind: 'User', name: 'ann' })
  await world.pass(1_000)
  await world.until(() => heard.length > 1)
  assert.equal(heard.length, 2, 'what changes in a moment is told as one')
  assert.equal(may(heard[1]?.text, ann, 'leases')?.allowed, true)
  it.rbac.delete('clusterrolebindings', 'pods')
  bind('x', { kind: 'User', name: 'nobody-here' })
  await world.pass(1_000)
  await world.until(() => heard.length === 3)
  assert.equal(may(heard[2]?.text, ann, 'pods')?.allowed, false)
})

test('[L29] whether what was told is current follows the hub, the stream and the link', async () => {
  await using it = await opened()
  const { world, linked, heard, token, hub, link } = it
  linked.seen(token, ann)
  await world.until(() => heard.length === 1)
  it.running.begin()
  const at = () => heard[0]?.heardAt() ?? Number.NEGATIVE_INFINITY
  await world.pass(3_000)
  await world.until(() => at() > 0)
  hub.isCurrent = false
  await world.pass(3_000)
  await world.until(() => at() === Number.NEGATIVE_INFINITY)
  hub.isCurrent = true
  await world.pass(3_000)
  await world.until(() => at() > 0)
  link.current = undefined
  assert.equal(at(), Number.NEGATIVE_INFINITY)
})

test('[L29, D2] who keeps rules hears what becomes of each stream, and has written that one ends before it does', async () => {
  await using it = await opened()
  const { world, linked, heard, token, hub, link, news, live } = it
  void linked.run(it.ending)
  linked.seen(token, ann)
  await world.until(() => heard.length === 1)
  it.running.begin()
  await world.pass(3_000)
  await world.until(() => news.length === 2)
  hub.isCurrent = false
  await world.pass(3_000)
  await world.until(() => news.length === 3)
  hub.isCurrent = true
  await world.pass(3_000)
  await world.until(() => news.length === 4)
  assert.deepEqual(news.splice(0), ['ann unheard', 'ann heard', 'ann unheard', 'ann heard'])
  // Not seen for long: the hub goes on until it is written.
  const { promise, resolve } = Promise.withResolvers<void>()
  it.written.until = promise
  await world.pass(77 * 60_000)
  await world.until(() => news.length > 0)
  assert.deepEqual(news.splice(0), ['ann ended'])
  assert.match(it.told().figures().join('\n'), /ake_hub_rules_streams 1/)
  assert.equal(heard[0]?.heardAt(), Number.NEGATIVE_INFINITY)
  resolve()
  await world.until(() => /ake_hub_rules_streams 0/.test(it.told().figures().join('\n')))
  // Seen again, over another link: of that nothing was told yet.
  linked.seen(token, ann)
  await world.until(() => news.includes('ann heard'))
  news.splice(0)
  link.become({ ...live } as LiveLink)
  assert.deepEqual(news, ['ann ended'])
  await world.until(() => news.includes('ann heard'))
  news.splice(0)
  // Gone with its link.
  link.become(undefined)
  it.edge.streams?.close('the line was cut')
  await world.until(() => news.length > 0)
  assert.deepEqual(news, ['ann cut'])
})

test('[I2, L29] a right that is withdrawn while its caller is not seen does not count at the next cut, and one that is followed up to it does', async () => {
  const edge = await openBench()
  edge.cloud.users.set('token-of-ann', ann)
  await edge.access.caller({ kind: 'token', token: 'token-of-ann' })
  await using it = await opened({}, edge.rules)
  const { world, linked, token, news, link, live } = it
  void edge.run(it.ending)
  void linked.run(it.ending)
  const may = () => edge.access.decide(token, makeQuestion({ verb: 'get', version: 'v1', resource: 'pods' }))
  const see = async () => {
    edge.cloud.state = 'reachable'
    linked.seen(token, ann)
    await world.until(() => news.at(-1) === 'ann heard')
  }
  const cut = () => {
    link.become(undefined)
    edge.cloud.state = 'unreachable'
  }
  it.bind('pods', { kind: 'User', name: 'ann' })
  it.running.begin()
  await world.pass(3_000)
  await see()
  cut()
  assert.equal(may(), 'allowed')
  // Back, and the rules are told over this link too.
  link.become({ ...live } as LiveLink)
  await see()
  await world.pass(77 * 60_000)
  await world.until(() => news.at(-1) === 'ann ended')
  it.rbac.delete('clusterrolebindings', 'pods')
  it.bind('x', { kind: 'User', name: 'somebody-else' })
  await world.pass(1_000)
  cut()
  assert.equal(may(), 'unknown')
  // Heard of after all.
  link.become({ ...live } as LiveLink)
  await see()
  cut()
  assert.equal(may(), 'denied')
})

test('[L29] the end of the edge is to rules what a cut is: nothing is told of it', async () => {
  await using it = await opened()
  const { world, linked, heard, token, news } = it
  const ending = new AbortController()
  const ended = linked.run(ending.signal)
  linked.seen(token, ann)
  await world.until(() => heard.length === 1)
  news.splice(0)
  ending.abort()
  await ended
  await world.until(() => /ake_hub_rules_streams 0/.test(it.told().figures().join('\n')))
  await world.settle()
  assert.deepEqual(news, [])
})

test('[L29] of others than callers that were shown, the own node, nobody and reviewed subjects nothing is told', async () => {
  await using it = await opened()
  const { world, edge, linked, heard, bind, reviewed, links } = it
  bind('pods', { kind: 'User', name: 'admin' })
  const answerTo = async (
    asked: Parameters<typeof encodeRulesQuestion>[0],
    credential: { token?: string; certificate?: string } = {},
  ) => {
    const stream = edge.streams?.open({ purpose: rulesPurpose, ...credential }) as TunnelDuplex
    stream.write(encodeRulesQuestion(asked))
    let text = ''
    for await (const piece of stream) text += (piece as Buffer).toString('latin1')
    return text
  }
  const subject = { meant: 'subject', name: 'admin', groups: ['system:masters'] } as const
  const unreviewed = /has not reviewed such a subject for the node of this link/
  assert.match(await answerTo(subject), unreviewed)
  assert.match(await answerTo({ ...subject, meant: 'credential' }), /no credential was shown/)
  assert.match(
    await answerTo({ ...subject, meant: 'credential' }, { token: 'forged' }),
    /does not accept this credential/,
  )
  const foreign = shownBy(new TestAuthority('kubernetes').issue('admin')).text
  assert.match(await answerTo({ ...subject, meant: 'credential' }, { certificate: foreign }), /no authority/)
  // Whatever is named beside a credential, the credential counts; and the node and a client without a credential are who they are.
  const chain = shownBy(cluster.issue('ann', 'devs')).text
  linked.seen({ kind: 'named', caller: ann, chain }, ann)
  linked.seen({ kind: 'certificate', name: 'system:node:other' }, { ...ann, name: 'system:node:other' })
  linked.seen({ kind: 'anonymous' }, { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] })
  await world.until(() => heard.length === 3)
  assert.deepEqual(heard.map(({ caller }) => caller.name).sort(), ['ann', 'system:anonymous', 'system:node:n1'])
  // A review of the node makes a subject one that may be asked about, over that link.
  const body = Buffer.from(JSON.stringify({ spec: { user: 'admin', groups: ['system:masters'] } }))
  const pass = async (path: string, bytes: Buffer, { status = 201, contentType = 'application/json' } = {}) => {
    const asked = {
      method: 'POST',
      path,
      contentType,
      body: (async function* () {
        yield bytes
      })(),
    }
    const passing = reviewed.overhear(links[0] as object, asked)
    for await (const _ of passing.body);
    passing.answered(status)
  }
  await pass('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', body)
  assert.match(await answerTo(subject), unreviewed)
  for (const status of [403, 401, 422, 429, 500]) {
    await pass('/apis/authorization.k8s.io/v1/subjectaccessreviews', body, { status })
    assert.match(await answerTo(subject), unreviewed, String(status))
  }
  await pass('/apis/authorization.k8s.io/v1/subjectaccessreviews', body)
  linked.reviewed({ name: 'admin', groups: ['system:masters'] })
  await world.until(() => heard.length === 4)
  assert.equal(heard[3]?.caller.name, 'admin')
  // A kubelet writes its reviews in protobuf.
  const type = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' }
  const message = messageOf(type.apiVersion, type.kind) as Message
  const spelled = wrap(type, encodeMessage(message, Buffer.from(JSON.stringify({ spec: { user: 'bob', groups: [] } }))))
  await pass('/apis/authorization.k8s.io/v1/subjectaccessreviews', spelled, {
    contentType: 'application/vnd.kubernetes.protobuf',
  })
  linked.reviewed({ name: 'bob', groups: [] })
  await world.until(() => heard.length === 5)
  assert.equal(heard[4]?.caller.name, 'bob')
})

test('[L29] nothing more is told once the credential has ended, and what cannot be judged now goes on', async () => {
  await using it = await opened()
  const { world, linked, heard, bind, token, tokens } = it
  const bob: Caller = { name: 'bob', uid: 'b', groups: ['devs', 'system:authenticated'] }
  tokens.set('token-of-bob', bob)
  linked.seen(token, ann)
  linked.seen({ kind: 'token', token: 'token-of-bob' }, bob)
  const cara: Caller = { name: 'cara', uid: '', groups: ['devs', 'system:authenticated'] }
  const chain = shownBy(cluster.issue('cara', 'devs', { notAfter: nowMs + 30_000 })).text
  linked.seen({ kind: 'named', caller: cara, chain }, cara)
  await world.until(() => heard.length === 3)
  it.running.begin()
  const toldOf = (name: string) => heard.filter(({ caller }) => caller.name === name).length
  tokens.set('token-of-ann', 'unknown')
  tokens.set('token-of-bob', 'refused')
  it.wall.ms = nowMs + 31_000
  await world.pass(61_000)
  await world.until(() => /ake_hub_rules_streams 1\b/.test(it.told().figures().join('\n')))
  bind('pods', { kind: 'Group', name: 'devs' })
  await world.pass(1_000)
  await world.until(() => toldOf('ann') === 2)
  assert.deepEqual([toldOf('bob'), toldOf('cara')], [1, 1])
  const bobs = heard.find(({ caller }) => caller.name === 'bob')
  assert.equal(bobs?.heardAt(), Number.NEGATIVE_INFINITY, 'its edge knows that they are not current')
  tokens.set('token-of-ann', { ...ann, groups: ['others'] })
  await world.pass(61_000)
  await world.until(() => /ake_hub_rules_streams 0\b/.test(it.told().figures().join('\n')))
})

test('[L29, A8] a link has as many as it may, and a caller with too many rules is told none', async () => {
  await using it = await opened({ perLinkMax: 3 })
  const { world, edge, linked, heard, rbac, token, tokens } = it
  const bound = Buffer.from(
    JSON.stringify({ roleRef: { kind: 'ClusterRole', name: 'r' }, subjects: [{ kind: 'User', name: 'ann' }] }),
  )
  for (let at = 0; at < 5_000; at++) rbac.put('rolebindings', `n${at}/b`, bound)
  linked.seen(token, ann)
  await world.until(() => heard.length === 1)
  assert.deepEqual([heard[0]?.caller.name, heard[0]?.text], ['ann', undefined])
  for (let at = 0; at < 5; at++) {
    const caller = { name: `c${at}`, uid: '', groups: [] }
    tokens.set(`t${at}`, caller)
    linked.seen({ kind: 'token', token: `t${at}` }, caller)
  }
  await world.until(() => heard.length === 3)
  await world.pass(1_000)
  assert.equal(heard.length, 3)
  assert.match(it.told().figures().join('\n'), /ake_hub_rules_streams 3/)
  edge.line?.lose()
  await world.pass(1_000)
  await world.until(() => /ake_hub_rules_subjects 0/.test(it.told().figures().join('\n')))
})
