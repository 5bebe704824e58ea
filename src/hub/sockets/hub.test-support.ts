/** A hub's listener and edges before it, over real TLS on loopback, with nothing behind them. */
import type { X509Certificate } from 'node:crypto'
import { after } from 'node:test'
import type { WebSocket } from 'ws'
import type { Clock } from '../../base/clock.ts'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { LinkLimits } from '../../link/socket/limits.ts'
import type { LinkEnd, LinkSocket } from '../../link/socket/linksocket.ts'
import type { KeyPair } from '../../pki/certificate.ts'
import { credentialText, parseCredential } from '../../pki/credentialfile.ts'
import { dialTcp } from '../../upstream/dial.ts'
import { dialHub, type HubDialParts } from '../../upstream/linked/hubdial.ts'
import { HubTicketPouch } from '../../upstream/linked/tickets.ts'
import { authoritiesOf } from '../state/authorities.ts'
import { edgePair, hubPair } from '../state/certificates.ts'
import { type HubState, makeState } from '../state/state.ts'
import type { EdgePeer } from './edgepeer.ts'
import type { HubSocketLimits } from './limits.ts'
import { HubListener } from './listener.ts'
import type { PlainAnswer, PlainRequest } from './plain.ts'

/** A link and what came of it. */
export class Heard<Peer> {
  readonly link: LinkSocket<Peer>
  readonly frames: Buffer[] = []
  readonly ended: Promise<LinkEnd>
  end: LinkEnd | undefined
  readies = 0

  constructor(link: LinkSocket<Peer>) {
    this.link = link
    this.ended = new Promise((resolve) => {
      link.begin({
        frame: (frame) => void this.frames.push(Buffer.from(frame)),
        ready: () => void this.readies++,
        closed: (end) => {
          this.end = end
          resolve(end)
        },
      })
    })
  }
}

export type HubParts = {
  readonly state?: HubState
  readonly hosts?: readonly string[]
  readonly port?: number
  readonly clock?: Clock
  readonly limits?: Partial<HubSocketLimits>
  readonly linkLimits?: Partial<LinkLimits>
  readonly clusterAuthorities?: readonly X509Certificate[]
  readonly revoked?: (peer: EdgePeer) => string | undefined
  readonly clusterUnread?: () => string | undefined
  readonly unusable?: (edge: { readonly name: string; readonly from: string }, why: string) => void
  readonly replica?: (line: WebSocket) => void
  readonly plain?: (asked: PlainRequest) => Promise<PlainAnswer>
  readonly now?: number
}

/** A test that fails leaves nothing behind that would keep its room from ending. */
const open = new Set<HubListener>()
export const ended = new AbortController()
after(async () => {
  ended.abort()
  await Promise.all([...open].map((listener) => listener.close('the tests are over')))
})

export async function startHub(parts: HubParts = {}) {
  const { state = makeState(Date.now()), hosts = ['127.0.0.1', 'localhost'], port = 0, now = Date.now() } = parts
  const links: Heard<EdgePeer>[] = []
  const listener = new HubListener({
    ...{ clock: systemClock, ...parts, log: silentLog, state, serving: hubPair(state, hosts, now) },
    addresses: [{ host: '127.0.0.1', port }],
    accepted: (link) => void links.push(new Heard(link)),
  })
  const [at] = await listener.listen()
  open.add(listener)
  const close = () => {
    open.delete(listener)
    return listener.close('the test ends')
  }
  const address = (host = '127.0.0.1') => new URL(`wss://${host}:${at?.port}`)
  const adopt = (other: HubState) => listener.setState(other, hubPair(other, hosts, now))
  return { state, listener, links, address, adopt, port: at?.port ?? 0, close, [Symbol.asyncDispose]: close }
}

export function credentialOf(state: HubState, name = 'edge-1', now = Date.now()) {
  return credentialWith(state, edgePair(state, name, now))
}

/** Of whatever authority signed the pair. */
export function credentialWith(state: HubState, pair: KeyPair) {
  const ca = authoritiesOf(state).map(({ pem }) => pem)
  return parseCredential(credentialText({ ca: ca.join(''), pair, title: '' }), 'test')
}

function dialling(state: HubState, more: Partial<HubDialParts> & { readonly address: URL }): HubDialParts {
  return {
    ...{ dial: dialTcp(), credential: credentialOf(state), tickets: new HubTicketPouch(), now: Date.now },
    ...{ clock: systemClock, signal: ended.signal },
    ...more,
  }
}

export async function connect(state: HubState, more: Partial<HubDialParts> & { readonly address: URL }) {
  return new Heard(await dialHub(dialling(state, more)))
}
