/** Updates pods at a steady rate, each stamped with its time of sending so that watchers can tell how late it reached them. */

import type { Address } from './bench.ts'
import { connectTo } from './client.ts'
import { type Pod, stampKey, stampWidth } from './fixture.ts'

type Writing = {
  readonly at: Address
  readonly pods: readonly Pod[]
  readonly perSecond: number
  readonly forMs: number
}

/** Resolves with the number of updates when the last is answered. */
export async function writeSteadily({ at, pods, perSecond, forMs }: Writing): Promise<number> {
  const connection = await connectTo(at, 'h2')
  const answers: Promise<void>[] = []
  const update = async (pod: Pod) => {
    const { object, namespace, name } = pod
    const stamp = String(process.hrtime.bigint()).padStart(stampWidth, '0')
    const annotations = { ...object.metadata.annotations, [stampKey]: stamp }
    const body = JSON.stringify({ ...object, metadata: { ...object.metadata, annotations } })
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    const { status, text } = await connection.ask({ method: 'PUT', path, body }, true)
    if (status !== 200) throw new Error(`PUT ${path}: ${status} ${text?.slice(0, 500)}`)
  }
  const start = performance.now()
  const total = Math.round((perSecond * forMs) / 1_000)
  for (let sent = 0; sent < total; sent++) {
    const due = start + (sent * 1_000) / perSecond
    const wait = due - performance.now()
    if (wait > 0) await new Promise((resume) => setTimeout(resume, wait))
    answers.push(update(pods[sent % pods.length]!))
  }
  await Promise.all(answers)
  connection.close()
  return total
}
