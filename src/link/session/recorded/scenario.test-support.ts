/**
 * What recorded peers went through, step by step: each is what happens to the cluster and the hub, and whether the edge comes
 * again. The same steps made the recording, at the state that it names, and lead the replay: so they are not changed, only added to.
 */
import type { SimulatedCluster } from '../hubmodel.test-support.ts'

/** What a step may do. */
export type RecordedWorld = {
  readonly cluster: SimulatedCluster
  /** The cloud changes, and the hub follows. */
  write(key: string, text: string | undefined, isNew?: boolean): void
  progress(): void
  /** The link before breaks, and the edge comes again. */
  connect(): void
  /** A hub that knows of the cluster only what it has now; the edge has no link. */
  replaceHub(): void
  /** The cluster was put back to a version; the hub notices. */
  putBack(version: number): void
  /** The edge looks after an interest. */
  recheck(name: string): void
  pass(ms: number): void
  drain(): void
}

export const recordedInterests = ['s0', 's0/b', 's0?x']
/** Small ones, so that few objects are blocks, pieces and batches. */
export const recordedLimits = { batchBytes: 1_024, blockObjectBytes: 4_096, pieceBytes: 512 }

const pod = (at: number, word: string) =>
  `${at % 2 === 0 ? 'label=x' : 'label=y'};${word};${Array.from({ length: 12 }, (_, line) => `field ${line * at} of pod ${at}`).join()}`

/** Text that nothing makes smaller, the same each time. */
function noise(length: number): string {
  let state = 7
  let text = ''
  while (text.length < length) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    text += (state >>> 4).toString(36)
  }
  return text.slice(0, length)
}

export const recordedSteps: Readonly<Record<string, (world: RecordedWorld) => void>> = {
  snapshot: (world) => {
    for (let at = 0; at < 40; at++) world.write(`${'ab'[at % 2]}/k${at}`, pod(at, 'first'))
    world.connect()
  },
  changes: (world) => {
    world.write('a/k0', pod(0, 'changed'))
    world.write('b/k1', undefined)
    world.write('a/k2', pod(2, 'made again'), true)
    world.write('b/new', pod(50, 'new'))
    world.progress()
  },
  large: (world) => {
    world.write('a/k4', `label=y;${noise(2_500)}`)
    world.progress()
  },
  asked: (world) => world.pass(31_000),
  replay: (world) => {
    world.connect()
    world.write('b/k3', pod(3, 'meanwhile'))
    world.write('a/k6', undefined)
    world.connect()
  },
  rechecked: (world) => world.recheck('s0/b'),
  compare: (world) => {
    world.replaceHub()
    for (const at of [7, 9, 11]) world.write(`b/k${at}`, pod(at, 'without history'))
    world.replaceHub()
    world.connect()
  },
  'put back': (world) => {
    const { version } = world.cluster
    world.write('a/lost', pod(60, 'lost'))
    world.write('b/k13', pod(13, 'lost'))
    world.putBack(version)
    world.write('b/k13', pod(13, 'in the new past'))
    world.progress()
  },
  drain: (world) => world.drain(),
}
