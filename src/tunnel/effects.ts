/** What a tunnel hands to what drives it: the consequences of a frame that came, and frames to be sent. */
import type { HeldCredential } from './credentials.ts'
import { type CarriedFrame, encodeTunnelFrame, type ResetReason, type TunnelFrame } from './frames.ts'
import type { TunnelStream } from './stream.ts'

export type TunnelEffect =
  | { readonly type: 'opened'; readonly stream: TunnelStream; readonly credential: HeldCredential }
  | { readonly type: 'data'; readonly stream: TunnelStream; readonly bytes: Buffer }
  | { readonly type: 'ended'; readonly stream: TunnelStream }
  /** The other side gave it up: nothing can be sent, and nothing more comes. */
  | {
      readonly type: 'reset'
      readonly stream: TunnelStream
      readonly reason: ResetReason
      readonly sentence: string
    }

export type TakenFrame = {
  readonly frame: CarriedFrame
  /** Whose waiting bytes (and end, if it was wanted) have all been taken with it. */
  readonly drained: TunnelStream | undefined
}

/** One that takes no stream's waiting bytes along. */
export function takenFrame(frame: TunnelFrame): TakenFrame {
  return { frame: encodeTunnelFrame(frame), drained: undefined }
}
