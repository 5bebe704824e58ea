/** The pods of fixture.ts as an API server holds them: with uid, version and time, printed without building them again. */

import { chanceOf } from '../../src/base/seeded.test-support.ts'
import { makePods, stampKey, stampWidth, uuid } from '../fixture.ts'

const versionMark = '@version@'
const stampMark = '@stamp@'

export type CloudPod = {
  readonly namespace: string
  readonly name: string
  readonly node: string
  version: number
  /** When the last event about it was sent, in nanoseconds. */
  stamp: bigint
  text(): string
}

export function makeCloudPods(count: number): CloudPod[] {
  const random = chanceOf(2)
  return makePods(count).map(({ namespace, name, object }, index) => {
    const { metadata, ...rest } = object as typeof object & { spec: { nodeName: string } }
    const annotations = { ...metadata.annotations, [stampKey]: stampMark }
    const born = { uid: uuid(random), resourceVersion: versionMark, creationTimestamp: '2026-11-01T00:00:00Z' }
    const { apiVersion, kind, ...body } = rest as typeof rest & { apiVersion: string; kind: string }
    const text = JSON.stringify({ kind, apiVersion, metadata: { ...metadata, ...born, annotations }, ...body })
    const pieces = text.split(new RegExp(`${versionMark}|${stampMark}`))
    const isVersionFirst = text.indexOf(versionMark) < text.indexOf(stampMark)
    const pod: CloudPod = {
      namespace,
      name,
      node: rest.spec.nodeName,
      version: index + 2,
      stamp: 0n,
      text: () => {
        const stamp = String(pod.stamp).padStart(stampWidth, '0')
        const [first, second] = isVersionFirst ? [pod.version, stamp] : [stamp, pod.version]
        return `${pieces[0]}${first}${pieces[1]}${second}${pieces[2]}`
      },
    }
    return pod
  })
}
