/**
 * The authorities by which the cluster knows clients, as `ake join` wrote them beside the credential: the hub tells over its link when they are
 * others, so that an edge goes on knowing its callers, and its own next certificate, when the cluster's authority is rotated. Without that file nothing is written:
 * an edge whose operator gives other authorities (`--client-ca`) is told by them alone.
 */
import { X509Certificate } from 'node:crypto'
import { dirname, join } from 'node:path'
import { reasonOf } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { pemsIn } from '../../pki/certificate.ts'
import { clusterCaName } from '../../pki/credentialfile.ts'
import { readPrivateFile, writePrivateFile } from '../../pki/privatefile.ts'
import { StreamBroken } from '../../tunnel/duplex.ts'
import {
  clientAuthoritiesPurpose,
  decodeAuthorities,
  digestOfAuthorities,
  encodeKnown,
  takeSaid,
} from '../../tunnel/identity/identity.ts'
import type { EdgeLink } from './edgelink.ts'
import type { LiveLink } from './livelink.ts'

type Parts = {
  readonly path: string
  readonly link: Pick<EdgeLink, 'current' | 'observe'>
  readonly log: Log
}

/** Where `ake join` put it. */
export function clusterCaBeside(credential: string): string {
  return join(dirname(credential), clusterCaName)
}

export class ClusterCaFile {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Undefined: there is no such file, or nothing in it that could be used. */
  async read(): Promise<readonly X509Certificate[] | undefined> {
    try {
      const pems = pemsIn((await readPrivateFile(this.#parts.path)) ?? '')
      return pems.length === 0 ? undefined : pems.map((pem) => new X509Certificate(pem))
    } catch {
      return undefined
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const { link } = this.#parts
    let told: LiveLink | undefined
    const look = () => {
      const { current } = link
      if (current === undefined || current === told) return
      told = current
      void this.#hear(current)
    }
    const deaf = link.observe(look)
    look()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    deaf()
  }

  /** Asks over one link; the answer comes when they are others than those in the file. */
  async #hear(live: LiveLink): Promise<void> {
    const { link, log, path } = this.#parts
    while (link.current === live) {
      const known = await this.read()
      const stream = known === undefined ? undefined : live.streams?.open({ purpose: clientAuthoritiesPurpose })
      if (stream === undefined || known === undefined) return
      try {
        stream.end(encodeKnown(digestOfAuthorities(known)))
        const authorities = decodeAuthorities(await takeSaid(stream)).map((raw) => new X509Certificate(raw))
        if (authorities.length === 0 || !authorities.every(({ ca }) => ca)) throw new Error('the hub told none')
        await writePrivateFile(path, authorities.map(String).join(''))
        log.info('cluster.authorities', { fingerprints: authorities.map((one) => one.fingerprint256).join(' ') })
      } catch (error) {
        stream.destroy()
        // A hub of an earlier release does not tell, and the end of the link is told elsewhere.
        if (!(error instanceof StreamBroken)) log.warn('cluster.authorities', { path, why: reasonOf(error) })
        return
      }
    }
  }
}
