/**
 * An edge's credential over time: the authorities of its hub as that tells them, and another certificate for one that the hub signed,
 * before it ends or once another authority signs. Both are written down before they count. With another certificate the edge makes another
 * link beside the one it has, at a moment when nothing runs over that: until then that is as good as it was.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import { reasonOf } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { issuedAtOf, type KeyPair } from '../../pki/certificate.ts'
import { nodeNamedBy } from '../../pki/credentialfile.ts'
import { signerOf } from '../../pki/verdict.ts'
import { StreamBroken } from '../../tunnel/duplex.ts'
import {
  authoritiesPurpose,
  decodeAuthorities,
  decodeRenewalAnswer,
  digestOfAuthorities,
  encodeKnown,
  encodeRenewal,
  proofOf,
  renewalPurpose,
  takeSaid,
} from '../../tunnel/identity/identity.ts'
import type { EdgeLink } from './edgelink.ts'
import type { FollowedHubCredential } from './hubcredential.ts'
import { isIdle } from './idle.ts'
import type { LiveLink } from './livelink.ts'

type Parts = {
  readonly link: Pick<EdgeLink, 'current' | 'observe' | 'handOver'>
  readonly credential: Pick<FollowedHubCredential, 'current' | 'node' | 'keep' | 'observe'>
  readonly clock: Clock
  /** Trusted time, where the machine's clock is not. */
  readonly now: () => number
  readonly log: Log
  readonly random?: () => number
  readonly limits?: Partial<typeof renewalLimits>
}

export const renewalLimits = {
  /** Of the life of a certificate, when another one is asked for; by chance up to a tenth later. */
  dueAt: 0.7,
  /** For certificates of earlier releases, which do not say when they were issued. */
  lifeMs: 730 * 24 * 3_600_000,
  /** Within this time all edges of a hub whose authority was switched ask, by chance. */
  spreadMs: 600_000,
  lookEveryMs: 60_000,
  /** After a hub, or the disk, said no. */
  retryMs: 3_600_000,
  answerMsMax: 10_000,
  /** How long it is waited at most for a moment when nothing runs over the link that has the old certificate. */
  idleMsMax: 24 * 3_600_000,
  idleLookMs: 1_000,
}

export class CredentialRenewal {
  readonly #parts: Parts
  readonly #limits: typeof renewalLimits
  readonly #random: () => number
  /** By chance, at the start: when in the time for it this edge asks. */
  readonly #share: number
  /** Since when another authority signs, as far as this edge has heard. */
  #oldSince: number | undefined
  #notBefore = 0
  /** The link that was made with a certificate before this one, and when it is left whatever runs over it. */
  #outdated: { readonly link: LiveLink; readonly leaveAt: number } | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...renewalLimits, ...parts.limits }
    this.#random = parts.random ?? Math.random
    this.#share = this.#random()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { link, credential } = this.#parts
    let told: LiveLink | undefined
    const look = () => {
      const { current } = link
      if (current === undefined || current === told) return
      told = current
      void this.#hear(current)
    }
    const deaf = link.observe(look)
    let before = credential.current.certificate
    const deafer = credential.observe(() => {
      const { certificate } = credential.current
      if (certificate.fingerprint256 !== before.fingerprint256) this.#outdate(link.current, before)
      before = certificate
    })
    look()
    await Promise.all([this.#renewInTime(signal), this.#moveInTime(signal)])
    deaf()
    deafer()
  }

  /** Asks over one link which authorities there are; the answer comes when they are others than those that are known. */
  async #hear(live: LiveLink): Promise<void> {
    const { link, credential, log } = this.#parts
    while (link.current === live) {
      const stream = live.streams?.open({ purpose: authoritiesPurpose })
      if (stream === undefined) return
      try {
        stream.end(encodeKnown(digestOfAuthorities(credential.current.authorities)))
        const authorities = decodeAuthorities(await takeSaid(stream)).map((raw) => new X509Certificate(raw))
        const known = new Set(credential.current.authorities.map(({ fingerprint256 }) => fingerprint256))
        const isContinued = authorities.some(({ fingerprint256 }) => known.has(fingerprint256))
        if (!isContinued || !authorities.every(({ ca }) => ca)) throw new Error('none of them was known before')
        await credential.keep({ ca: authorities.map(String).join('') })
        log.info('hub.authorities', { fingerprints: authorities.map((one) => one.fingerprint256).join(' ') })
      } catch (error) {
        stream.destroy()
        // A hub of an earlier release does not tell, and the end of the link is told elsewhere.
        if (error instanceof StreamBroken) return
        log.warn('hub.authorities', { why: reasonOf(error) })
        return
      }
    }
  }

  async #renewInTime(signal: AbortSignal): Promise<void> {
    const { clock, log, link } = this.#parts
    while (!signal.aborted) {
      const live = link.current
      if (live !== undefined && clock.steady() >= this.#notBefore && this.#isDue()) {
        await this.#renew(live).catch((error: unknown) => {
          this.#notBefore = clock.steady() + this.#limits.retryMs
          log.warn('hub.renewal', { why: reasonOf(error) })
        })
      }
      await sleep(clock, this.#limits.lookEveryMs, signal)
    }
  }

  /** Whether it is one that the hub signed, and it is time. */
  #isDue(): boolean {
    const { credential, clock, now } = this.#parts
    const { certificate, authorities } = credential.current
    const signer = signerOf(certificate, authorities)
    if (signer === undefined) return false
    const isOld = signer.fingerprint256 !== authorities[0]?.fingerprint256
    this.#oldSince = isOld ? (this.#oldSince ?? clock.steady()) : undefined
    if (this.#oldSince !== undefined && clock.steady() - this.#oldSince >= this.#share * this.#limits.spreadMs)
      return true
    const endsAt = certificate.validToDate.getTime()
    const issuedAt = issuedAtOf(certificate.serialNumber) ?? endsAt - this.#limits.lifeMs
    return now() >= issuedAt + (endsAt - issuedAt) * (this.#limits.dueAt + this.#share / 10)
  }

  async #renew(live: LiveLink): Promise<void> {
    const { credential, clock } = this.#parts
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const key = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
    const stream = live.streams?.open({ purpose: renewalPurpose })
    if (stream === undefined) throw new Error('there is no stream for it now')
    const cancel = clock.setTimer(this.#limits.answerMsMax, () => stream.giveUp('cancelled', 'it took too long'))
    try {
      stream.end(encodeRenewal({ key, proof: proofOf(key, credential.node, privateKey) }))
      const { certificate, sentence, retryAfterMs } = decodeRenewalAnswer(await takeSaid(stream))
      if (certificate.length === 0) {
        this.#notBefore = clock.steady() + Math.max(retryAfterMs, this.#limits.lookEveryMs)
        this.#parts.log.warn('hub.renewal', { why: `the hub refuses: ${sentence}` })
        return
      }
      await credential.keep({ pair: this.#checked(certificate, privateKey) })
    } finally {
      cancel()
      stream.destroy()
    }
  }

  /** Only what could be used is kept. */
  #checked(raw: Buffer, privateKey: KeyObject): KeyPair {
    const { credential } = this.#parts
    const certificate = new X509Certificate(raw)
    const isOurs = certificate.checkPrivateKey(privateKey) && nodeNamedBy(certificate) === credential.node
    if (!isOurs || signerOf(certificate, credential.current.authorities) === undefined)
      throw new Error('what the hub signed is not for this edge')
    return { cert: certificate.toString(), key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
  }

  /** A hub ends a link with its certificate: half of what is left of that is enough to wait for. */
  #outdate(live: LiveLink | undefined, { validToDate }: X509Certificate): void {
    // One that was made with an earlier certificate still is to be left when that one says.
    if (live === undefined || this.#outdated?.link === live) return
    const { clock, now } = this.#parts
    const leftMs = Math.max(0, validToDate.getTime() - now())
    this.#outdated = { link: live, leaveAt: clock.steady() + Math.min(this.#limits.idleMsMax, leftMs / 2) }
  }

  async #moveInTime(signal: AbortSignal): Promise<void> {
    const { clock, link } = this.#parts
    while (!signal.aborted) {
      await sleep(clock, this.#limits.idleLookMs, signal)
      const outdated = this.#outdated
      if (outdated === undefined || signal.aborted) continue
      if (link.current !== outdated.link) this.#outdated = undefined
      else if (isIdle(outdated.link) || clock.steady() >= outdated.leaveAt) await link.handOver(signal)
    }
  }
}
