/** A dial through a proxy: over TCP or TLS to it, then the greeting, then the wire is the API server's. */
import { connect, createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { Destination, Dial, Wire } from './dial.ts'
import type { ForwardProxy } from './proxychoice.ts'
import { greetingOf } from './proxygreeting.ts'
import { DialFault, isCertain, reasonOf } from './reason.ts'
import type { Trust } from './secure.ts'

/** `dial` leads to the proxy; `trust` is the kubeconfig's. */
export function dialThrough(dial: Dial, proxy: ForwardProxy, trust: Trust): Dial {
  return async (to, signal) => {
    let wire: Wire | undefined
    const leave = () => void wire?.destroy(signal.reason as Error)
    signal.addEventListener('abort', leave)
    try {
      wire = await dial(proxy, signal)
      if (proxy.kind === 'https') wire = await secured(wire, proxy.host, trust)
      await greeted(wire, proxy, to)
      return wire
    } catch (error) {
      wire?.destroy()
      // What the proxy said has its name in it already; all else is what became of the way to it.
      if (error instanceof DialFault && error !== signal.reason) throw error
      throw new DialFault(`the proxy ${proxy.name}: ${reasonOf(error)}`, isCertain(error))
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }
}

/**
 * TLS to the proxy itself, believed by the kubeconfig's authority, as client-go has it, or by the system's, which a site's
 * proxy is more likely to be signed by. The edge's certificate is the API server's to see, not the proxy's.
 */
function secured(wire: Wire, host: string, { ca, insecure }: Trust): Promise<Wire> {
  const secureContext = contextWith(ca)
  const ALPNProtocols = ['http/1.1']
  const socket = connect({ socket: wire, host, secureContext, rejectUnauthorized: !insecure, ALPNProtocols })
  return new Promise((resolve, reject) => {
    wire.on('error', reject)
    socket.on('error', reject)
    socket.once('close', () => reject(wire.errored ?? new Error('closed')))
    socket.once('secureConnect', () => resolve(socket))
  })
}

/** Kept: hundreds of authorities take a tenth of a second to read. */
let kept: { readonly ca: string | undefined; readonly context: SecureContext } | undefined

function contextWith(ca: string | undefined): SecureContext {
  if (kept === undefined || kept.ca !== ca) {
    const all = new Set([
      ...getCACertificates('default'),
      ...getCACertificates('system'),
      ...(ca === undefined ? [] : [ca]),
    ])
    kept = { ca, context: createSecureContext({ ca: [...all] }) }
  }
  return kept.context
}

async function greeted(wire: Wire, proxy: ForwardProxy, to: Destination): Promise<void> {
  const greeting = greetingOf(proxy, to)
  let heard = Buffer.alloc(0)
  let said = greeting.next()
  while (said.done !== true) {
    if (said.value !== undefined) {
      wire.write(said.value)
      heard = Buffer.alloc(0)
    }
    heard = Buffer.concat([heard, await next(wire, proxy)])
    said = greeting.next(heard)
  }
}

/** Read and not heard by events: what comes after the greeting stays for TLS. */
async function next(wire: Wire, { name }: ForwardProxy): Promise<Buffer> {
  for (;;) {
    const chunk = wire.read() as Buffer | null
    if (chunk !== null) return chunk
    await new Promise<void>((resolve, reject) => {
      const stop = () => {
        wire.off('readable', more).off('end', gone).off('close', gone).off('error', gone)
      }
      const more = () => {
        stop()
        resolve()
      }
      const gone = () => {
        stop()
        reject(wire.errored ?? new DialFault(`the proxy ${name} closed the connection before it answered`, true))
      }
      wire.on('readable', more).on('end', gone).on('close', gone).on('error', gone)
      if (wire.destroyed || wire.readableEnded) gone()
    })
  }
}
