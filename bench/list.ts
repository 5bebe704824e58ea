/** What does a LIST of 5,000 pods, 17.4 MB, cost? One client that lists again and again on one connection. */

import type { Question } from './bench.ts'
import { measureReading } from './reading.ts'

export const list: Question = {
  name: 'list',
  ask: (bench) =>
    measureReading(bench, {
      name: 'LIST of 5,000 pods',
      path: '/api/v1/pods',
      clients: 1,
      atMost: 1.5,
    }),
}
