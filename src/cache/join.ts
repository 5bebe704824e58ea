/** Frames that go out together, joined once: the next watcher mostly has the very same ones. */

/** The frames joined last, and what they became. */
let joined: { readonly frames: readonly Buffer[]; readonly bytes: Buffer } | undefined

export function join(frames: readonly Buffer[]): Buffer | undefined {
  if (frames.length < 2) return frames[0]
  if (joined === undefined || !same(joined.frames, frames)) joined = { frames, bytes: Buffer.concat(frames) }
  return joined.bytes
}

function same(a: readonly Buffer[], b: readonly Buffer[]): boolean {
  return a.length === b.length && a.every((frame, i) => frame === b[i])
}
