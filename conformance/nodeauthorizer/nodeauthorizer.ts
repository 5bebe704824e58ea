/**
 * What nodes may do, by the real API server's authorizer of nodes and by ours, over the same objects: the same answer for the
 * same reason to every question, and again after each change of what leads to a node.
 */
import { leadingResources, NodeGraph } from '../../src/access/node/graph.ts'
import { NodeAuthorizer } from '../../src/access/node/nodeauthorizer.ts'
import { makeQuestion } from '../../src/access/question.ts'
import { readAccess } from '../../src/kube/accessreview.ts'
import { fromPlain } from '../../src/kube/json/json.ts'
import { Seat } from '../asking.ts'
import { Findings } from '../findings.ts'
import type { Oracle } from '../oracle.ts'
import { chooseSeed, type Random, seeded } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { changes } from './changes.ts'
import { generateQuestion, questionsAbout, type ReviewSpec } from './questions.ts'
import { NodesWorld } from './world.ts'

export const step: Step = { name: 'node-authorizer', tier: 'default', minutes: 2, run }

const firstQuestions = 700
const questionsAfterChange = 60
/** The API server's informers may be behind what it has stored. */
const lagMsMax = 15_000
const askAgainMs = 100
const atOnce = 8

const paths: Readonly<Record<(typeof leadingResources)[number], string>> = {
  pods: '/api/v1/pods',
  persistentvolumes: '/api/v1/persistentvolumes',
  volumeattachments: '/apis/storage.k8s.io/v1/volumeattachments',
  resourceslices: '/apis/resource.k8s.io/v1/resourceslices',
  podcertificaterequests: '/apis/certificates.k8s.io/v1beta1/podcertificaterequests',
}

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings()
  const seed = chooseSeed({ all: context.all, gate: 853_069_482 })
  const random = seeded(seed)
  const oracle = await context.oracle()
  const world = new NodesWorld(oracle, random)
  const compared = new Compared(oracle)
  try {
    await world.fill()
    await compared.look()
    await findings.part(`seed ${seed}: at first`, () =>
      ask(compared, findings, random, firstQuestions, generateQuestion),
    )
    for (const { name, concerns, change } of changes) {
      context.progress(name)
      await findings.part(name, async () => {
        await change(world, random)
        await compared.look()
        await ask(compared, findings, random, questionsAfterChange, questionsAbout(concerns))
        await ask(compared, findings, random, questionsAfterChange, generateQuestion)
      })
    }
    findings.note(`${compared.asked} questions, ${compared.allowed} allowed`)
    findings.check(compared.allowed * 8 > compared.asked, 'a fair part of the questions is allowed')
  } finally {
    compared.close()
    await world.close()
  }
  return findings.result
}

async function ask(
  compared: Compared,
  findings: Findings,
  random: Random,
  count: number,
  generate: (random: Random) => ReviewSpec,
): Promise<void> {
  const questions = Array.from({ length: count }, () => generate(random))
  const next = questions.values()
  const one = async () => {
    for (const spec of next) {
      const [real, ours] = await compared.both(spec)
      findings.equal(ours, real, JSON.stringify(spec))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
}

/** The real authorizer, and ours over what the API server has. */
class Compared {
  asked = 0
  allowed = 0
  readonly #seat: Seat
  readonly #graph = new NodeGraph()
  readonly #authorizer = new NodeAuthorizer(this.#graph)
  /** What was there when it was last looked at. */
  readonly #there = new Map<string, string>()

  constructor({ url, ca, cert, key }: Oracle) {
    this.#seat = new Seat({ url, ca }, { cert, key })
  }

  close(): void {
    this.#seat.close()
  }

  /** Takes in what has changed, as a watch would tell it. */
  async look(): Promise<void> {
    for (const resource of leadingResources) {
      const { status, body } = await this.#seat.ask(paths[resource])
      // Certificate requests are not served unless they are switched on.
      if (status === 404) continue
      const { items } = JSON.parse(body) as { items: { metadata: { name: string; namespace?: string } }[] }
      const gone = new Set([...this.#there.keys()].filter((key) => key.startsWith(`${resource} `)))
      for (const item of items) {
        const { name, namespace = '' } = item.metadata
        const key = `${resource} ${namespace} ${name}`
        const text = JSON.stringify(item)
        gone.delete(key)
        if (this.#there.get(key) === text) continue
        this.#there.set(key, text)
        this.#graph.put(resource, Buffer.from(text))
      }
      for (const key of gone) {
        const [, namespace = '', name = ''] = key.split(' ')
        this.#there.delete(key)
        this.#graph.remove(resource, namespace, name)
      }
    }
  }

  /** Ours is asked once; the real one until it has caught up, or has had the time to. */
  async both(spec: ReviewSpec): Promise<readonly [real: string, ours: string]> {
    const ours = this.#ours(spec)
    const give = performance.now() + lagMsMax
    let real = await this.#real(spec)
    while (real !== ours && performance.now() < give) {
      await new Promise((done) => setTimeout(done, askAgainMs))
      real = await this.#real(spec)
    }
    this.asked++
    if (ours.startsWith('true')) this.allowed++
    return [real, ours]
  }

  #ours({ user: name, groups, ...spec }: ReviewSpec): string {
    const asked = readAccess(fromPlain(spec))
    const said = this.#authorizer.judge({ name, uid: '', groups }, makeQuestion(asked))
    return said === undefined ? 'no answer' : told(said.allowed, said.reason, asked.evaluationError)
  }

  async #real(spec: ReviewSpec): Promise<string> {
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec }
    const answer = await this.#seat.ask('/apis/authorization.k8s.io/v1/subjectaccessreviews', { method: 'POST', body })
    if (answer.status !== 201) return `${answer.status} ${answer.body}`
    const { status } = JSON.parse(answer.body) as {
      status: { allowed: boolean; reason?: string; evaluationError?: string }
    }
    return told(status.allowed, status.reason ?? '', status.evaluationError ?? '')
  }
}

function told(allowed: boolean, reason: string, evaluationError: string): string {
  return [allowed, reason, evaluationError].join(' | ')
}
