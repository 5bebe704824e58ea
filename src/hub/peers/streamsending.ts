/**
 * What goes out of an edge's streams, and when: what controls them at once, their bytes as far as bulk has room. An edge of an older release,
 * which does not acknowledge them, has them as far as little waits on its socket.
 */
import type { Clock } from '../../base/clock.ts'
import type { HubSession } from '../../link/session/hub.ts'
import type { CarriedFrame } from '../../tunnel/frames.ts'
import type { TunnelStreams } from '../../tunnel/streams.ts'
import { peerLimits } from './limits.ts'

type Parts = {
  readonly streams: Pick<TunnelStreams, 'next'>
  readonly session: Pick<HubSession, 'isStreamPaced' | 'streamRoom' | 'streamed'>
  /** Whether the socket takes more, and what it has not passed on. */
  readonly line: { readonly hasRoom: boolean; readonly bufferedBytes: number }
  readonly send: (frame: CarriedFrame) => void
  /** Blocks that shared the line with what was sent may follow. */
  readonly sent: () => void
  readonly clock: Clock
}

/** Of a frame, beside the bytes of its stream. */
const headBytesMax = 32

export class StreamSending {
  readonly #parts: Parts
  #cancelLook: (() => void) | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Whenever there may be something to send, or room for it. */
  flush(): void {
    this.stop()
    const { streams, send, sent, session } = this.#parts
    let count = 0
    for (; ; count++) {
      const room = this.#room()
      const frame = streams.next(room > 0, room)
      if (frame === undefined) break
      session.streamed(frame.payload.length, this.#parts.clock.steady())
      send(frame)
    }
    if (count > 0 && session.isStreamPaced) sent()
    this.#lookAgain()
  }

  stop(): void {
    this.#cancelLook?.()
    this.#cancelLook = undefined
  }

  #room(): number {
    const { session, line, clock } = this.#parts
    if (!line.hasRoom) return 0
    if (session.isStreamPaced) return session.streamRoom(clock.steady()) - headBytesMax
    return line.bufferedBytes < peerLimits.tunnelBytesMax ? Number.POSITIVE_INFINITY : 0
  }

  /** Where bytes are not acknowledged: a socket that is full tells when it is not; below that it does not tell. */
  #lookAgain(): void {
    const { session, line, clock } = this.#parts
    if (session.isStreamPaced || !line.hasRoom || line.bufferedBytes < peerLimits.tunnelBytesMax) return
    this.#cancelLook = clock.setTimer(peerLimits.tunnelLookMs, () => this.flush())
  }
}
