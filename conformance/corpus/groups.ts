/** Every group of the corpus, in the order in which it runs. */
import type { Group } from '../corpus.ts'
import { reads } from './reads.ts'

export const groups: readonly Group[] = [reads]
