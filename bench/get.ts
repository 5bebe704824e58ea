/** What does a GET of one pod cost, asked by 32 clients? */

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
      clients: 32,
      atMost: 2,
    })
  },
}
