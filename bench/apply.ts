/** What does server-side apply cost? A pod of 3.5 KB with three managers, each of whom applies its own fields again and again. */
import type { Contestant, Question, Target } from './bench.ts'
import { type Connection, connectTo } from './client.ts'
import { makePods, type Pod } from './fixture.ts'
import { cpuExactMs } from './process.ts'

const pods = 20
const rounds = 15
const warmRounds = 5
const managers = ['first', 'second', 'third'] as const

export const apply: Question = {
  name: 'apply',
  ask: async (bench) => {
    const measured: { [name in Contestant]?: number } = {}
    for (const target of await bench.targets('ake', 'kube-apiserver')) {
      measured[target.name] = await measure(target)
      bench.say(`  ${target.name}: ${measured[target.name]!.toFixed(2)} ms CPU per apply`)
    }
    return [{ name: 'apply of a pod with 3 managers', unit: 'ms CPU', measured, atMost: 1.5 }]
  },
}

async function measure(target: Target): Promise<number> {
  const connection = await connectTo(target, 'h2')
  const chosen = makePods(pods)
  let applied = 0
  const round = async (number: number) => {
    for (const pod of chosen) {
      for (const manager of managers) await applyOnce(connection, pod, manager, number)
      applied += managers.length
    }
  }
  for (let number = 0; number < warmRounds; number++) await round(number)
  applied = 0
  const before = cpuExactMs(target.pid)
  for (let number = warmRounds; number < warmRounds + rounds; number++) await round(number)
  const cost = (cpuExactMs(target.pid) - before) / applied
  connection.close()
  return cost
}

/** Each has fields of its own, one value of which changes every time. */
async function applyOnce(connection: Connection, pod: Pod, manager: string, number: number): Promise<void> {
  const { namespace, name } = pod
  const own = {
    labels: { [`${manager}.example/label`]: String(number) },
    annotations: { [`${manager}.example/at`]: `${number}` },
  }
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, ...own } })
  const path = `/api/v1/namespaces/${namespace}/pods/${name}?fieldManager=${manager}&force=true`
  const headers = { 'content-type': 'application/apply-patch+yaml' }
  const { status, text } = await connection.ask({ method: 'PATCH', path, headers, body }, true)
  if (status !== 200) throw new Error(`apply to ${path}: ${status} ${text?.slice(0, 300)}`)
}
