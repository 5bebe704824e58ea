/** The front of the write engine: which verb on which resource or subresource is whose work. */

import { randomInt, randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { isResource } from '../kube/resource.ts'
import { KnownOwners } from './apply/managed/known.ts'
import { deleteCollection } from './collection.ts'
import { create } from './create.ts'
import { deleteObject } from './delete.ts'
import type { Engine, WriteGuard } from './engine.ts'
import { Entering } from './entering.ts'
import { KeyLock } from './lock.ts'
import { patch } from './patch.ts'
import { bindPod, evictPod } from './pods.ts'
import { methodNotServed } from './refusals.ts'
import { type ReviewJudge, review } from './reviews.ts'
import { patchScale, updateScale } from './scale.ts'
import { Sweeper } from './sweeper.ts'
import { requestToken, type TokenIssuer } from './tokens.ts'
import { update } from './update.ts'
import type { ObjectsOf, Writable, WriteRequest, WriteResult } from './write.ts'

type Parts = {
  readonly objectsOf: ObjectsOf
  readonly catalog: Writable
  readonly clock: Clock
  readonly log: Log
  /** A whole number below its argument; tests decide it. */
  readonly random?: (below: number) => number
  readonly newUid?: () => string
  /** What may not be written whatever its form. */
  readonly guard?: WriteGuard | undefined
  /** Of the tokens of service accounts. */
  readonly issuer: TokenIssuer
  /** What answers reviews. */
  readonly judge?: ReviewJudge
}

const bindings = { group: '', resource: 'bindings' }

/** Subresources through which an object itself is written, each a part of it. */
const parts: ReadonlySet<string> = new Set(['', 'status', 'finalize', 'approval', 'ephemeralcontainers', 'resize'])

export class Writer {
  /** Finishes what a delete only begins; the composition that owns the writer runs it. */
  readonly sweeper: Sweeper
  readonly #engine: Engine
  readonly #issuer: TokenIssuer
  readonly #judge: ReviewJudge | undefined

  constructor(parts: Parts) {
    const { objectsOf, catalog, clock, log, random = randomInt, newUid = randomUUID, guard } = parts
    this.#issuer = parts.issuer
    this.#judge = parts.judge
    const wakeSweeper = (began: boolean) => this.sweeper.wake(began)
    const shared = { lock: new KeyLock(), entering: new Entering(), known: new KnownOwners(), wakeSweeper }
    this.#engine = { objectsOf, catalog, clock, log, random, newUid, guard, ...shared }
    this.sweeper = new Sweeper(this.#engine)
  }

  async create(request: WriteRequest): Promise<WriteResult> {
    const { resource, subresource } = request
    if (subresource === 'binding') return bindPod(this.#engine, request)
    if (subresource === 'eviction') return evictPod(this.#engine, request)
    if (subresource === 'token') return requestToken(this.#engine, this.#issuer, request)
    if (subresource !== '') throw methodNotServed()
    if (isResource(resource, bindings)) return bindPod(this.#engine, request)
    const answered = await review(this.#engine, request, this.#judge)
    if (answered !== undefined) return answered
    // Something that lives in a namespace is created there, not at the collection of all namespaces.
    if (resource.namespaced && request.namespace === '') throw methodNotServed()
    return create(this.#engine, request)
  }

  async update(request: WriteRequest): Promise<WriteResult> {
    if (request.subresource === 'scale') return updateScale(this.#engine, request)
    this.#requirePart(request)
    return update(this.#engine, request)
  }

  async patch(request: WriteRequest): Promise<WriteResult> {
    if (request.subresource === 'scale') return patchScale(this.#engine, request)
    this.#requirePart(request)
    return patch(this.#engine, request)
  }

  async delete(request: WriteRequest): Promise<WriteResult> {
    if (request.subresource !== '') throw methodNotServed()
    return deleteObject(this.#engine, request)
  }

  async deleteCollection(request: WriteRequest): Promise<WriteResult> {
    if (request.subresource !== '') throw methodNotServed()
    return deleteCollection(this.#engine, request)
  }

  #requirePart({ subresource }: WriteRequest): void {
    if (!parts.has(subresource)) throw methodNotServed()
  }
}
