/** What does a kubelet's LIST cost: the 50 pods of one node out of 5,000, by field selector? */

import type { Question } from './bench.ts'
import { nodeName } from './fixture.ts'
import { measureReading } from './reading.ts'

export const nodename: Question = {
  name: 'nodename',
  ask: (bench) =>
    measureReading(bench, {
      name: 'LIST of one node',
      path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${nodeName(7)}`,
      clients: 8,
      atMost: 2,
    }),
}
