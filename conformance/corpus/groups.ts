/** Every group of the corpus, in the order in which it runs. */
import type { Group } from '../corpus.ts'
import { conversions } from './conversions.ts'
import { costs } from './costs.ts'
import { creates } from './creates.ts'
import { customs } from './customs.ts'
import { defaults } from './defaults.ts'
import { definitions } from './definitions.ts'
import { deletes } from './deletes.ts'
import { discovery } from './discovery.ts'
import { endings } from './endings.ts'
import { errors } from './errors.ts'
import { negotiation } from './negotiation.ts'
import { nulls } from './nulls.ts'
import { paging } from './paging.ts'
import { patches } from './patches.ts'
import { reads } from './reads.ts'
import { reviews } from './reviews.ts'
import { selectors } from './selectors.ts'
import { subresources } from './subresources.ts'
import { tables } from './tables.ts'
import { updates } from './updates.ts'
import { watches } from './watches.ts'

/** Discovery first, while both know nothing but built-ins; endings last, because they leave little behind. */
export const groups: readonly Group[] = [
  discovery,
  reads,
  paging,
  selectors,
  watches,
  negotiation,
  tables,
  errors,
  creates,
  defaults,
  updates,
  patches,
  deletes,
  nulls,
  subresources,
  conversions,
  reviews,
  definitions,
  customs,
  costs,
  endings,
]
