/**
 * Random lives of a mirror over links. Whatever happened, the copy ends with what the cluster has, and so does each client with its watches: its versions never
 * went back, no stream told an event twice or left one out, nothing of one cluster was shown as another's, and it was made to list again only by a past that was lost. AKE_SEED repeats
 * a run that failed.
 */

import { test } from 'node:test'
import { liveEach } from '../../base/lives.test-support.ts'
import { LinkedLife } from './life.test-support.ts'

test('[L1, L7, A10] random lives of a mirror over links: copy and clients end with what the cluster has', () =>
  liveEach({ file: import.meta.filename, all: 200, live: (seed) => new LinkedLife(seed).live(90) }))
