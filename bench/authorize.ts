/**
 * What does a decision cost where an edge tells it from mirrored roles, with 5,000 bindings: of a question that was never asked,
 * and of one that was? And how much memory does the index of them take? No process of its own: the same code, in this one.
 */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { openBench } from '../src/access/access.test-support.ts'
import type { Evaluation } from '../src/access/evaluation.ts'
import { makeQuestion } from '../src/access/question.ts'
import { Rbac } from '../src/access/rbac/rbac.ts'
import type { Caller } from '../src/kube/caller.ts'
import type { Question } from './bench.ts'
import { bindingCount, groupCount, makeRoles, roleResources, roleVerbs, teamName } from './roles.ts'

const callers = 100
const groupsOfCaller = 12
const asked = 20_000
const rounds = 5
const knownRepeats = 200_000

export const authorize: Question = {
  name: 'authorize',
  ask: async ({ say }) => {
    const bytes = memoryOf((sink) => fill(sink))
    const { access, evaluation, cloud, clock } = await openBench()
    fill(evaluation)
    evaluation.follow({ heardAt: () => clock.steady() })
    const identities = Array.from({ length: callers }, (_, at) => ({ kind: 'token', token: `token-${at}` }) as const)
    for (const [at, { token }] of identities.entries()) cloud.users.set(token, caller(at))
    for (const identity of identities) await access.caller(identity)
    cloud.state = 'unreachable'

    let fresh = Number.POSITIVE_INFINITY
    let allowed = 0
    for (let round = 0; round < rounds; round++) {
      const questions = Array.from({ length: asked }, (_, at) => question(at + round * asked))
      const began = process.cpuUsage()
      for (const [at, one] of questions.entries()) {
        if (access.decide(identities[at % callers]!, one) === 'allowed') allowed++
      }
      fresh = Math.min(fresh, microseconds(began) / asked)
    }
    say(`  ${allowed} of ${rounds * asked} were allowed`)

    cloud.state = 'reachable'
    cloud.allows = () => true
    const known = firstAllowed(evaluation)
    await access.decide(identities[0]!, known)
    let held = Number.POSITIVE_INFINITY
    for (let round = 0; round < rounds; round++) {
      const began = process.cpuUsage()
      for (let at = 0; at < knownRepeats; at++) void access.decide(identities[0]!, known)
      held = Math.min(held, microseconds(began) / knownRepeats)
    }
    const name = (what: string) => `decision from roles with 5,000 bindings, ${what}`
    return [
      { name: name('of a question never asked'), unit: 'µs CPU', measured: { ake: fresh }, atMost: 50 },
      { name: name('of a known one'), unit: 'µs CPU', measured: { ake: held }, atMost: 5 },
      {
        name: 'index of 5,000 bindings and 2,300 roles, per 1,000 bindings',
        unit: 'KB',
        measured: { ake: bytes / 1024 / (bindingCount / 1_000) },
      },
    ]
  },
}

type Sink = Pick<Evaluation, 'put'>

function fill(sink: Sink): void {
  for (const { resource, namespace, name, content } of makeRoles()) {
    const key = namespace === '' ? name : `${namespace}/${name}`
    sink.put(resource, key, Buffer.from(JSON.stringify({ metadata: {}, ...content })))
  }
}

function caller(at: number): Caller {
  const own = Array.from({ length: groupsOfCaller }, (_, more) => `group-${(at * 31 + more * 17) % groupCount}`)
  const isAccount = at % 2 === 0
  const name = isAccount ? `system:serviceaccount:${teamName(at)}:account-${at % 7}` : `user-${at}`
  return { name, uid: `u-${at}`, groups: [...own, 'system:authenticated'] }
}

function question(at: number): ReturnType<typeof makeQuestion> {
  return makeQuestion({
    verb: roleVerbs[at % 7]!,
    group: at % 5 === 0 ? 'batch' : 'apps',
    resource: roleResources[(at >> 3) % 8]!,
    namespace: teamName(at >> 5),
    name: `n-${at}`,
  })
}

function firstAllowed(evaluation: Evaluation): ReturnType<typeof makeQuestion> {
  for (let at = 0; ; at++) if (evaluation.judge(caller(0), question(at))?.allowed === true) return question(at)
}

function microseconds(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began)
  return user + system
}

/** What is left of the heap's growth after a collection. */
function memoryOf(fillInto: (sink: Sink) => void): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const rbac = new Rbac()
  collect()
  const before = process.memoryUsage().heapUsed
  fillInto(rbac)
  collect()
  const grown = process.memoryUsage().heapUsed - before
  if (rbac.bindings !== bindingCount) throw new Error(`${rbac.bindings} bindings`)
  return grown
}
