/** Pods behind a hub that may read more than their node: their tokens prove it, one watch at the API server serves all edges. */
import { Seat } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { creatorOf } from '../rights/objects.ts'
import { watchesUpstream } from '../site.ts'
import { messageOf } from './kubelet.ts'
import { bindProxy, type NodeName, nodes, shopSlices, slice, slices, unbindProxy } from './objects.ts'
import type { HubbedWorld } from './world.ts'

/** As informers begin. */
const listing = `${slices}?limit=500&resourceVersion=0`
const namespaces = '/api/v1/namespaces?limit=500&resourceVersion=0'
const watching = (version: string) =>
  `${slices}?watch=1&allowWatchBookmarks=true&timeoutSeconds=590&resourceVersion=${version}`
/** The hub looks at each proof once a minute; and some more on a busy machine. */
const noticedMsMax = 120_000
/** For something to come that must not. */
const settleMs = 1_000

/** A watch that its client holds while things happen. */
export class HeldWatch {
  readonly #abandon: () => void
  #text = ''
  isOver = false

  private constructor(abandon: () => void) {
    this.#abandon = abandon
  }

  /** Lists and watches, as an informer does. */
  static async open(world: HubbedWorld, name: NodeName): Promise<HeldWatch> {
    const seat = new Seat(world.edge(name).ake, world.person(`proxy ${name}`))
    const listed = await seat.ask(listing)
    if (listed.status !== 200) throw new Error(`no list at ${name}: ${listed.status} ${listed.body}`)
    const { metadata } = JSON.parse(listed.body) as { metadata: { resourceVersion: string } }
    const answer = await seat.open(watching(metadata.resourceVersion))
    if (answer.statusCode !== 200) throw new Error(`no watch at ${name}: ${answer.statusCode}`)
    const watch = new HeldWatch(() => {
      answer.destroy()
      seat.close()
    })
    const end = () => {
      watch.isOver = true
    }
    answer.setEncoding('utf8').on('data', (text: string) => {
      watch.#text += text
    })
    answer.on('end', end).on('error', end)
    return watch
  }

  /** Types and names of what came, bookmarks left out. */
  get events(): readonly string[] {
    const lines = this.#text.split('\n').filter((line) => line !== '')
    const frames = lines.map((line) => JSON.parse(line) as { type: string; object: { metadata: { name?: string } } })
    return frames.filter(({ type }) => type !== 'BOOKMARK').map(({ type, object }) => `${type} ${object.metadata.name}`)
  }

  close(): void {
    this.#abandon()
  }
}

const slicesOf = (world: HubbedWorld) => async (): Promise<number> =>
  (await watchesUpstream(world.oracle)).get('endpointslices') ?? 0

/** At one edge, with nobody like it at the other. Answers how many watches of slices the API server had before. */
export async function checkCaller(world: HubbedWorld, findings: Findings): Promise<number> {
  const watches = slicesOf(world)
  const before = await watches()
  findings.equal(await isFed(world, 'edge-1'), false, 'no slices before anybody asked')
  await showToken(world, findings, 'edge-1')
  const watch = await HeldWatch.open(world, 'edge-1')
  await creatorOf(world.oracle)(shopSlices, slice('added'))
  await world.until('the watch tells', async () => watch.events.includes('ADDED added'))
  findings.equal(watch.events, ['ADDED added'], 'what the watch of a pod tells')
  findings.equal(await watches(), before + 1, 'watches at the API server for one edge')
  findings.equal(await isFed(world, 'edge-2'), false, 'the edge without such a caller has no slices')
  await checkBare(world, findings)
  const pod = world.at('edge-1', 'proxy edge-1')
  findings.equal((await pod.ask(namespaces)).status, 200, 'the pod lists namespaces')
  await world.untilState('edge-1', 'namespaces', 'synced')
  findings.equal(watch.isOver, false, 'the watch goes on')
  watch.close()
  return before
}

export async function checkBothEdges(world: HubbedWorld, findings: Findings, before: number): Promise<void> {
  await showToken(world, findings, 'edge-2')
  const watches = await Promise.all(nodes.map((name) => HeldWatch.open(world, name)))
  findings.equal(await slicesOf(world)(), before + 1, 'watches at the API server for both edges')
  await creatorOf(world.oracle)(shopSlices, slice('for-both'))
  for (const watch of watches) {
    await world.until('both watches tell', async () => watch.events.includes('ADDED for-both'))
    findings.equal([watch.events, watch.isOver], [['ADDED for-both'], false], 'what a watch of each edge tells')
    watch.close()
  }
}

/** While its caller asks: the hub may have refused it a moment ago. */
export async function untilFed(world: HubbedWorld, name: NodeName): Promise<void> {
  const pod = world.at(name, `proxy ${name}`)
  const holds = async () => (await pod.ask(listing)).status === 200 && (await isFed(world, name))
  await world.until(`${name} is fed`, holds)
}

/** A first list: its caller proves what the edge may have. A watch that came at once would go up by itself until it ends. */
async function showToken(world: HubbedWorld, findings: Findings, name: NodeName): Promise<void> {
  const { status } = await world.at(name, `proxy ${name}`).ask(listing)
  findings.equal(status, 200, `the pod of ${name} lists for the first time`)
  await world.untilState(name, 'endpointslices', 'synced')
}

async function isFed(world: HubbedWorld, name: NodeName): Promise<boolean> {
  return (await world.kept(name, 'endpointslices'))?.state === 'synced'
}

/** A token without the right: nothing is shown, and nothing comes to its edge because it asked. */
async function checkBare(world: HubbedWorld, findings: Findings): Promise<void> {
  const [bare, straight] = [world.at('edge-1', 'bare'), world.straight('bare')]
  for (const path of [listing, namespaces, '/apis/networking.k8s.io/v1/ingresses?limit=500&resourceVersion=0']) {
    const [told, expected] = [await bare.ask(path), await straight.ask(path)]
    findings.equal(
      [told.status, messageOf(told)],
      [403, messageOf(expected)],
      `a token without the right asks for ${path}`,
    )
  }
  const { interests } = await world.status('edge-1')
  const came = interests.filter(({ resource }) => ['ingresses', 'namespaces'].includes(resource))
  findings.equal(came, [], 'what comes to an edge because somebody without the right asked')
}

/** The line is cut: what was served goes on, also after a restart. */
export async function checkServedOffline(world: HubbedWorld, findings: Findings, when: string): Promise<void> {
  const pod = world.at('edge-1', 'proxy edge-1')
  const told = await pod.ask(listing)
  findings.equal([told.status, namesIn(told.body)], [200, ['added', 'cart', 'web']], `${when}: the pod lists`)
  const { metadata } = JSON.parse(told.body) as { metadata: { resourceVersion: string } }
  const watched = await pod.watch(watching(metadata.resourceVersion), settleMs)
  findings.equal([watched.status, watched.ended], [200, false], `${when}: the pod watches`)
  findings.equal((await world.at('edge-1', 'bare').ask(listing)).status, 403, `${when}: a token without the right`)
  const copy = await world.at('edge-1', 'administrator').ask(namespaces)
  findings.equal(copy.status, 200, `${when}: the administrator reads what the pod had mirrored`)
}

/** Back after a restart: what a caller asked for offline is fed at once; what nobody asked for waits, and says so. */
export async function checkProvedAgain(world: HubbedWorld, findings: Findings): Promise<void> {
  await world.untilState('edge-1', 'endpointslices', 'synced')
  const pod = world.at('edge-1', 'proxy edge-1')
  await world.until('the slice of meanwhile', async () => namesIn((await pod.ask(listing)).body).includes('meanwhile'))
  await world.untilState('edge-1', 'namespaces', 'refused')
  const kept = await world.kept('edge-1', 'namespaces')
  const sentence = /needs the credential of a caller who may, and none was shown over this link/
  findings.check(sentence.test(kept?.why ?? ''), 'the status says why namespaces are not fed', kept)
  const isNew = async (ask: () => Promise<string>) => namesIn(await ask()).includes('meanwhile')
  const copied = await world.at('edge-1', 'administrator').ask(namespaces)
  findings.equal(namesIn(copied.body).includes('meanwhile'), false, 'what is not fed is as it was')
  const fedMs = await world.until('namespaces', () => isNew(async () => (await pod.ask(namespaces)).body))
  await world.untilState('edge-1', 'namespaces', 'synced')
  findings.note(`namespaces were fed ${Math.round(fedMs)} ms after their caller asked`)
}

/** `meanwhile` happens while the hub has not noticed yet. */
export async function checkUnbound(
  world: HubbedWorld,
  findings: Findings,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const pod = world.at('edge-2', 'proxy edge-2')
  findings.equal((await pod.ask(listing)).status, 200, 'the pod lists while its role is bound')
  const startedMs = performance.now()
  await unbindProxy(world.oracle)
  await world.until('the pod is refused', async () => (await pod.ask(listing)).status === 403)
  findings.note(`a pod was refused ${seconds(startedMs)} s after its binding went`)
  await meanwhile()
  await world.untilState('edge-2', 'endpointslices', 'refused', noticedMsMax)
  findings.note(`an edge was fed no more ${seconds(startedMs)} s after the binding of its caller went`)
  const kept = await world.kept('edge-2', 'endpointslices')
  const told = /the last one may no more|a caller's was not taken/
  findings.check(told.test(kept?.why ?? ''), 'the status says why slices are not fed any more', kept)
  await creatorOf(world.oracle)(shopSlices, slice('unseen'))
  const copied = await world.at('edge-2', 'administrator').ask(listing)
  findings.equal([copied.status, namesIn(copied.body).includes('unseen')], [200, false], 'nothing new comes')

  await bindProxy(world.oracle)
  const boundMs = performance.now()
  const isSeen = async () => {
    const { status, body } = await pod.ask(listing)
    return status === 200 && namesIn(body).includes('unseen')
  }
  await world.until('the pod lists again', isSeen, noticedMsMax)
  await world.untilState('edge-2', 'endpointslices', 'synced', noticedMsMax)
  findings.note(`it was fed again ${seconds(boundMs)} s after the binding came back, its caller asking`)
}

function namesIn(body: string): string[] {
  const { items = [] } = JSON.parse(body) as { items?: { metadata: { name: string } }[] }
  return items.map(({ metadata }) => metadata.name).sort()
}

export function seconds(startedMs: number): string {
  return ((performance.now() - startedMs) / 1_000).toFixed(1)
}
