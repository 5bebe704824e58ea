/**
 * An edge whose mirror follows a real hub over a line in memory, with the proofs of its callers; the hub reads the model API server, and
 * asks a cloud that answers reviews.
 */
import { FakeCloud, FakeRecords } from '../../access/access.test-support.ts'
import { openHubCallers } from '../../app/hub/callers.ts'
import { createLog, type Log } from '../../base/log.ts'
import { NodeRights } from '../../hub/access/noderights.ts'
import { OwnRights } from '../../hub/access/ownrights.ts'
import { SetPolicies } from '../../hub/access/policies.test-support.ts'
import { ProvenRights } from '../../hub/access/provenrights.ts'
import { nowMs, type TestAuthority } from '../../hub/callers/certificates.test-support.ts'
import { HubWorld } from '../../hub/peers/hub.test-support.ts'
import type { Caller } from '../../kube/caller.ts'
import type { LinkTerms } from '../../link/session/session.ts'
import { interestOf } from '../../mirror/interest.ts'
import { MirrorWorld, settle } from '../../mirror/world.test-support.ts'
import type { TunnelDuplex } from '../../tunnel/duplex.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import { EdgeLink } from './edgelink.ts'
import { followLinked } from './followlinked.ts'
import { InterestProofs } from './interestproofs.ts'
import { MemoryLine } from './modelhub.test-support.ts'

type Rights = (account: string, verb: string, resource: string, namespace: string) => boolean

export class ProvingWorld {
  readonly hub: HubWorld
  readonly cloud = new FakeCloud()
  readonly lines: string[] = []
  readonly log: Log = createLog({ level: 'debug', write: (line) => void this.lines.push(line) })
  /** How often the hub refused an interest. */
  refusals = 0
  /** Proofs that came to the hub. */
  readonly shown: TunnelDuplex[] = []
  rights: Rights = (account) => account === 'reader'
  readonly policies: SetPolicies
  /** What the edge was told that they say of it. */
  readonly terms: LinkTerms[] = []
  /** One life of the edge's process. */
  edge!: Awaited<ReturnType<ProvingWorld['start']>>
  #proven!: ProvenRights
  #own!: OwnRights
  #callers!: Awaited<ReturnType<typeof openHubCallers>>
  readonly #ending = new AbortController()

  private constructor(hub: HubWorld, policies: SetPolicies) {
    this.hub = hub
    this.policies = policies
    this.cloud.users.set('', { name: 'hub', uid: '', groups: [] })
    this.cloud.allows = ({ name }, { resourceAttributes: { verb, resource, namespace } = {} }) =>
      this.rights(name, String(verb), String(resource), String(namespace))
  }

  /** With an authority of the cluster's clients the hub takes certificates of callers, whom policies let the edge speak for. */
  static async open({ authority }: { readonly authority?: TestAuthority } = {}): Promise<ProvingWorld> {
    const refuse = ({ stream }: IncomingStream) => stream.giveUp('unknown', 'not taken here')
    const policies = new SetPolicies()
    const hub = await HubWorld.open({
      policies,
      rights: () => ({
        judge: async (edge, wanted) => {
          const refusal = await world.#proven.judge(edge, wanted)
          if (refusal !== undefined) world.refusals++
          return refusal
        },
        left: (edge) => world.#proven.left(edge),
      }),
      accept: (edge) => {
        const accept = world.#own.acceptFor(edge, world.#callers.proofs.acceptFor(edge, refuse))
        return (incoming) => {
          world.shown.push(incoming.stream)
          accept(incoming)
        }
      },
    })
    const world = new ProvingWorld(hub, policies)
    const { mirror, sources } = hub
    const { clock } = mirror.server
    if (authority !== undefined) clock.jump(nowMs - clock.now())
    const speaking = authority && {
      authorities: () => [authority.certificate],
      speaksFor: (edge: string, caller: Caller) => policies.rulesOf(edge).speaksFor(caller),
      ...{ isConstrained: () => true, allowsLegacy: false },
    }
    world.#callers = await openHubCallers({
      ...{ upstream: world.cloud, interests: mirror.interests, sources, records: new FakeRecords(), clock },
      catalog: { find: () => undefined, observe: () => () => undefined },
      log: world.log,
      warnings: { warn: () => undefined },
      ...(speaking && { speaking }),
    })
    const nodes = new NodeRights({ sources, clock })
    world.#proven = new ProvenRights({
      nodes,
      callers: world.#callers.proofs,
      trustsEdges: false,
      policies,
    })
    world.#own = new OwnRights({ rights: world.#proven, clock })
    nodes.start()
    void world.#callers.run(world.#ending.signal)
    world.edge = await world.start()
    return world
  }

  /** The edge begins, over a disk that may hold something. */
  async start(store?: MirrorWorld['store']) {
    const { server } = this.hub.mirror
    const { clock } = server
    const ending = new AbortController()
    let line: MemoryLine | undefined
    let isDown = false
    const connect = async () => {
      while (isDown && !ending.signal.aborted) await settle(1)
      line = new MemoryLine()
      const certificate = {
        serial: '1',
        fingerprint: 'aa',
        signer: 'hub' as const,
        authority: '',
        issuedAtMs: 0,
        vouchedAtMs: 0,
        endsAtMs: clock.now() + 1e12,
      }
      const peer = { name: 'n1', certificate, resumed: false, from: '10.0.0.1' }
      const { cut } = line.edge
      this.hub.peers.accept({ ...line.hub, peer, cut, bufferedBytes: 0 })
      return line.edge
    }
    const hubs = { connect, lived: () => {}, moveOn: () => {}, leaveAlone: () => {}, hurry: () => {} }
    const { log } = this
    let opened: MirrorWorld | undefined
    const link = new EdgeLink({
      ...{ hubs, edge: 'n1', release: '1', clock, log },
      known: () => ({ cluster: '', epoch: 0 }),
      admit: () => Promise.resolve(undefined),
      terms: (terms) => {
        this.terms.push(terms)
        proofs.reconsider()
        opened?.interests.hurry()
      },
    })
    const proofs = new InterestProofs({
      ...{ link, clock },
      proven: (interest) => mirror.interests.named(interest)?.proven(),
    })
    const epochs = new Map<string, number>()
    const follow = followLinked({
      ...{ link, upstream: server, clock, proofs, limits: { objects: 1_000, bytes: 1 << 20 } },
      epochs: { of: (name) => epochs.get(name), reached: (name, epoch) => void epochs.set(name, epoch) },
      nameOf: (scope) => interestOf(scope).name,
    })
    void link.run(ending.signal)
    const mirror: MirrorWorld = await MirrorWorld.open({ server, follow, proofs, log, ...(store && { store }) })
    opened = mirror
    mirror.confirms = (interest, callers) => proofs.isWithdrawn(interest.name, callers)
    void proofs.run(ending.signal)
    return {
      ...{ mirror, proofs, link },
      cut: (forGood = false) => {
        isDown = forGood
        line?.cut()
      },
      mend: () => {
        isDown = false
      },
      async stop() {
        ending.abort()
        await mirror.stop()
      },
    }
  }

  /** The edge ends and begins again with what is on its disk. */
  async restart(): Promise<void> {
    const { store } = this.edge.mirror
    await this.edge.stop()
    this.edge = await this.start(store)
  }

  /** They change while everything runs. */
  async police(specs: Readonly<Record<string, object>>): Promise<void> {
    this.policies.set(specs)
    await this.hub.peers.policed()
  }

  until(holds: () => boolean): Promise<void> {
    return this.hub.until(holds)
  }

  pass(ms: number): Promise<void> {
    return this.hub.pass(ms)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.edge.stop()
    this.#ending.abort()
    await this.hub[Symbol.asyncDispose]()
  }
}
