/** What is known here and now of a reboot without the cloud: the facts that `survival` decides from, and its verdict as figures. */
import { statfs } from 'node:fs/promises'
import type { TokenKeeper } from '../access/tokens.ts'
import { type Clock, sleep } from '../base/clock.ts'
import { gauge, seriesOf } from '../base/metrics.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import { type Interest, interestOf } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { EdgeSubject } from './granting.ts'
import type { NodeNeeds } from './node.ts'
import type { MirrorTarget } from './optionkinds.ts'
import { type CredentialFact, type Need, type RebootCheck, type Survival, survivalOf } from './survival.ts'

/** A disk fills in minutes at the fastest, and may take its time to answer. */
const lookEveryMs = 60_000

type Parts = {
  readonly interests: Interests
  readonly catalog: CloudCatalog
  readonly needs: Pick<NodeNeeds, 'needed' | 'tokenPods'>
  readonly keeper: Pick<TokenKeeper, 'ends'>
  readonly upstream: Pick<Upstream, 'reachability'>
  readonly credentials: () => readonly CredentialFact[]
  readonly misconfigured: () => readonly string[]
  /** Asks the API server who the edge is. */
  readonly whoami: () => Promise<EdgeSubject | undefined>
  readonly node: string | undefined
  readonly targets: readonly MirrorTarget[]
  readonly disk: () => { readonly isHealthy: boolean; readonly damage: readonly string[] }
  /** Of the disk with the data. */
  readonly freeBytes: () => Promise<number>
  readonly clock: Clock
  /** The newest time that is known for sure. */
  readonly nowMs: () => number
}

export class Survey {
  readonly #parts: Parts
  #freeBytes: number | undefined
  #subject: EdgeSubject | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { freeBytes, clock, upstream } = this.#parts
    const deaf = upstream.reachability.observe((state) => {
      if (state === 'reachable') void this.ask()
    })
    while (!signal.aborted) {
      if (this.#subject === undefined) void this.ask()
      this.#freeBytes = await freeBytes().catch(() => undefined)
      await sleep(clock, lookEveryMs, signal)
    }
    deaf()
  }

  /** Who the edge is may be other than before. */
  async ask(): Promise<void> {
    const { upstream, whoami } = this.#parts
    if (upstream.reachability.state === 'reachable') this.#subject = (await whoami()) ?? this.#subject
  }

  survival(): Survival {
    const { catalog, needs, upstream, credentials, misconfigured, node, clock, disk } = this.#parts
    const nowMs = this.#parts.nowMs()
    const ends = this.#parts.keeper.ends()
    return survivalOf({
      nowMs,
      isReachable: upstream.reachability.state === 'reachable',
      node,
      needs: [
        ...needs.needed.flatMap(({ interest, for: use }) => this.#need(interest, use)),
        ...this.#targets().flatMap((interest) => this.#need(interest, 'option')),
      ],
      tokens: needs.tokenPods.map(({ key, uid }) => ({ pod: key, endsMs: ends.get(uid) })),
      credentials: credentials(),
      subject: this.#subject,
      isCatalogKnown: catalog.complete,
      misconfigured: misconfigured(),
      disk: { ...disk(), freeBytes: this.#freeBytes },
      clockBehindMs: nowMs - clock.now(),
    })
  }

  /** Told where it is known which node this is: elsewhere it would be an alarm for ever. */
  figures(): string[] {
    if (this.#parts.node === undefined) return []
    const { survives, checks } = this.survival()
    return [
      gauge('ake_survives_reboot', 'Whether this node would come back from a reboot without the API server.', [
        ['', survives === 'yes' ? 1 : 0],
      ]),
      gauge(
        'ake_check_state',
        'What `ake check` finds: 0 ok, 1 warning, 2 unknown, 3 failed.',
        checks.map(({ name, state }) => [seriesOf({ check: name }), states.indexOf(state)] as const),
      ),
    ]
  }

  #need(interest: Interest, use: Need['for']): Need[] {
    const { interests, catalog, upstream } = this.#parts
    const { group, version, resource, namespace, fields } = interest
    const mirrored = interests.named(interest.name)
    // A cluster without it has nothing that could be missing.
    if (mirrored === undefined && catalog.complete && catalog.find(group, version, resource) === undefined) return []
    const state = mirrored?.state ?? { kind: 'waiting', why: 'not begun' }
    const isInStep = state.kind === 'synced' || state.kind === 'fed' || upstream.reachability.state !== 'reachable'
    // A cut line takes back nothing that the API server has said.
    const said = state.kind === 'waiting' ? (mirrored?.refusal ?? state) : state
    const isDenied = said.kind === 'refused' && said.code === 403
    return [
      {
        for: use,
        ...{ group, resource, namespace, name: fields.required('metadata.name') ?? '' },
        state: isDenied ? 'denied' : mirrored?.readable === undefined ? 'missing' : isInStep ? 'held' : 'behind',
        why: 'why' in said ? said.why : said.kind,
      },
    ]
  }

  #targets(): Interest[] {
    const { targets, catalog } = this.#parts
    return targets.flatMap(({ resource: name, namespace }) =>
      catalog.resolveName(name).map(({ resource }) => interestOf({ ...resource, namespace })),
    )
  }
}

const states: readonly RebootCheck['state'][] = ['ok', 'warning', 'unknown', 'failed']

/** Of the disk that a folder is on, for one who is not its administrator. */
export async function freeBytesAt(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
