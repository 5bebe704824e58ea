/** What does a GET of one pod cost, with 32 requests under way at any time? */

import type { Question } from './bench.ts'
import { makePods } from './fixture.ts'
import { measureReading } from './reading.ts'

export const get: Question = {
  name: 'get',
  ask: (bench) => {
    const [pod] = makePods(1)
    return measureReading(bench, {
      name: 'GET of a pod',
      path: `/api/v1/namespaces/${pod!.namespace}/pods/${pod!.name}`,
      connections: { h2: 4, h1: 32 },
      streams: 8,
      atMost: 2,
    })
  },
}
