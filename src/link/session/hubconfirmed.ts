/**
 * How far an edge has come, for the people who look at it: the newest version of a change that it has acknowledged, and how many of its
 * interests are not live yet. Nothing of the session goes by this.
 */

export class ConfirmedVersion {
  #told = 0
  #version = 0
  /** Frames of events on their way, with what was told by their ends: as many as the session lets be. */
  #frames: { readonly position: number; readonly version: number }[] = []

  /** 0: nothing yet. */
  get version(): number {
    return this.#version
  }

  /** A change of that version is in the next frame, or was in blocks before it. */
  told(version: number): void {
    this.#told = Math.max(this.#told, version)
  }

  sent(position: number): void {
    this.#frames.push({ position, version: this.#told })
  }

  /** `isAll`: nothing else is on its way either. */
  acknowledged(position: number, isAll: boolean): void {
    let done = 0
    for (const frame of this.#frames) {
      if (frame.position > position) break
      this.#version = frame.version
      done++
    }
    if (done > 0) this.#frames.splice(0, done)
    if (isAll) this.#version = this.#told
  }

  /** Versions are given out again. */
  forget(): void {
    this.#told = 0
    this.#version = 0
    this.#frames = []
  }
}

/** Interests that are not told of each change yet: the hub has nothing of them, the edge compares, or all of it is being sent. */
export type UnliveInterests = { readonly waiting: number; readonly comparing: number; readonly syncing: number }

export function unliveOf(interests: Iterable<{ readonly phase: string }>): UnliveInterests {
  const counts = { waiting: 0, comparing: 0, syncing: 0 }
  for (const { phase } of interests) {
    if (phase === 'asked' || phase === 'waiting') counts.waiting++
    else if (phase === 'snapshot') counts.syncing++
    else if (phase !== 'live') counts.comparing++
  }
  return counts
}
