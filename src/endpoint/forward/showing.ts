/** Waits until one copy shows what a write did. */
import type { Clock } from '../../base/clock.ts'
import type { Cache } from '../../cache/cache.ts'
import type { CloudState } from '../../cache/cloudstate.ts'
import type { Effect } from './effects.ts'

/** False if that takes longer than until `endMs`, by the steady clock. */
export async function shows(
  cache: Cache,
  effects: readonly Effect[],
  { clock, endMs }: { clock: Clock; endMs: number },
): Promise<boolean> {
  const { version, pending } = awaited(cache.cloud, effects)
  const leftMs = () => Math.max(0, endMs - clock.steady())
  // What was gone before the copy had heard of it may still be on its way: first as far as the API server was.
  if (version > 0 && !(await cache.cloud.progress.reach(version, leftMs(), clock))) return false
  for (const [key, isPending] of pending) if (!isPending()) pending.delete(key)
  if (pending.size === 0) return true
  return new Promise((resolve) => {
    const end = (shown: boolean) => {
      cancel()
      stop()
      resolve(shown)
    }
    const cancel = clock.setTimer(leftMs(), () => end(false))
    const stop = cache.observe(({ key }) => {
      if (pending.get(key)?.() === false && pending.delete(key) && pending.size === 0) end(true)
    })
  })
}

type Awaited = {
  /** What has to be reached: of one that wrote nothing new no event will come. */
  readonly version: number
  /** Whether the copy still shows the object as it was, by key. */
  readonly pending: Map<string, () => boolean>
}

function awaited(cloud: Pick<CloudState, 'peek'>, effects: readonly Effect[]): Awaited {
  const pending = new Map<string, () => boolean>()
  let version = 0
  for (const effect of effects) {
    if (effect.kind === 'unknown') continue
    const { key } = effect
    const item = cloud.peek(key)
    if (effect.kind === 'gone') {
      const uid = effect.uid === '' ? item?.uid : effect.uid
      pending.set(key, () => {
        const now = cloud.peek(key)
        return now !== undefined && now.uid === uid
      })
      continue
    }
    if ((item?.version ?? 0) < effect.version) version = Math.max(version, effect.version)
    if (effect.kind === 'changed') {
      pending.set(key, () => {
        const now = cloud.peek(key)
        return now !== undefined && now.uid === effect.uid && now.version <= effect.version
      })
    }
  }
  return { version, pending }
}
