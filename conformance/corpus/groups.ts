/** Every group of the corpus, in the order in which it runs. */
import type { Group } from '../corpus.ts'
import { discovery } from './discovery.ts'
import { errors } from './errors.ts'
import { negotiation } from './negotiation.ts'
import { paging } from './paging.ts'
import { reads } from './reads.ts'
import { selectors } from './selectors.ts'
import { tables } from './tables.ts'
import { watches } from './watches.ts'

export const groups: readonly Group[] = [discovery, reads, paging, selectors, watches, negotiation, tables, errors]
