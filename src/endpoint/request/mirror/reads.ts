/** GET, LIST and WATCH at an edge: from the copy where it covers them, else by the cloud; held while a first sync is on its way. */
import type { OpenWatches } from '../../../access/watches.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Cache } from '../../../cache/cache.ts'
import { acceptOf } from '../../../kube/negotiate.ts'
import type { ApiRequest } from '../../../kube/request.ts'
import { tooOld } from '../../../kube/status.ts'
import type { KnownResource } from '../../../mirror/documents/catalog.ts'
import type { CloudRelease } from '../../../mirror/documents/cloudrelease.ts'
import { interestOf, scopeOfName } from '../../../mirror/interest.ts'
import { mirrorLimits } from '../../../mirror/mirror.ts'
import type { MirroredInterest } from '../../../mirror/mirrored.ts'
import { type HeldObject, type Identity, Unspoken, type Upstream } from '../../../upstream/upstream.ts'
import { piecesOf } from '../../answer/pieces.ts'
import { warn } from '../../answer/respond.ts'
import type { Call } from '../../call.ts'
import type { Authentication, Authorization } from '../../composition.ts'
import type { Response, Served } from '../../endpoint.ts'
import { Spelling } from '../../forms/spelling.ts'
import { isAlone } from '../../forward/alone.ts'
import type { Forwarder } from '../../forward/forwarder.ts'
import type { ReadYourWrites } from '../../forward/readyourwrites.ts'
import type { ClassView } from '../../views/view.ts'
import type { Seeing, Views } from '../../views/views.ts'
import { getItem, getObject } from '../get.ts'
import { listObjects } from '../list.ts'
import { getScale } from '../scale.ts'
import { refusedWatch, watchHeaders, watchObjects } from '../watch.ts'
import { DeferredWatch } from './deferredwatch.ts'
import { type Front, notSynced, type Read, type ReadRoute } from './front.ts'
import { isWatchList, readOf } from './readof.ts'
import { asJson, seenReply } from './seenreply.ts'

type Parts = {
  readonly authentication: Authentication
  readonly authorization: Authorization
  readonly watches: Pick<OpenWatches, 'add'>
  readonly front: Front
  readonly upstream: Upstream
  readonly forwarder: Forwarder
  readonly readYourWrites: ReadYourWrites
  readonly clock: Clock
  readonly release: Pick<CloudRelease, 'isLater'>
  /** Which callers see what otherwise; undefined: none does. */
  readonly views?: Pick<Views, 'of'> | undefined
}

type LocalRoute = Pick<Extract<ReadRoute, { kind: 'local' }>, 'cache' | 'mirrored'>

/** A read on its way. */
type ReadCall = {
  readonly known: KnownResource
  readonly read: Read
  readonly call: Call
  /** Of a caller who sees otherwise what it asks for. */
  readonly seeing: Seeing | undefined
}

export class MirrorReads {
  readonly #parts: Parts
  readonly #served = new WeakMap<KnownResource, Map<string, Served>>()
  #lastWarning: { readonly text: string; readonly header: string | readonly string[] } = { text: '', header: '' }

  readonly #avoidsProtobuf = (): boolean => this.#parts.release.isLater

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Whether this read could be answered here at all. `status` shows the object itself, `scale` is computed from it. */
  answers(known: KnownResource, api: ApiRequest): boolean {
    const { resource, mirrorable } = known
    // A namespace is addressed within itself, and nowhere else: rights in one namespace say nothing about another.
    const isItself = resource.group === '' && resource.resource === 'namespaces' && api.namespace === api.name
    const inNamespace = api.namespace !== '' && !isItself
    if (inNamespace && !resource.namespaced) return false
    if (api.verb === 'get' && resource.namespaced && !inNamespace) return false
    if (!mirrorable || api.subresource === '') return mirrorable
    const { subresource } = api
    if (api.verb !== 'get' || !resource.subresources.some(({ name }) => name === subresource)) return false
    return subresource === 'status' || (subresource === 'scale' && (!resource.custom || known.scale !== undefined))
  }

  read(known: KnownResource, call: Call): Promise<Response> | Response {
    const read = this.#readOf(known, call)
    // A caller that speaks for another sees what the API server would show it: things as they are.
    const seeing = call.impersonates ? undefined : this.#parts.views?.of(read.caller, read.scope)
    const asked: ReadCall = { known, read, call, seeing }
    const route = this.#parts.front.route(read)
    // The common read waits for nothing: it is answered without a promise of its own.
    if (route.kind === 'local') return this.#local(asked, route)
    return this.#elsewhere(route, asked)
  }

  /**
   * A form that cannot be had is refused before anything else that is wrong, as kube-apiserver does it; where nothing is, the
   * form is looked at only where it is answered, since the API server may speak more of them.
   */
  #readOf(known: KnownResource, call: Call): Read {
    try {
      const read = readOf(known, call, this.#parts.authentication.callerOf(call)?.name ?? '')
      if (isAlone(call, this.#parts.upstream)) return { ...read, isKeptHere: true, unasked: nameless }
      const isKept = call.identity.kind === 'edge' && this.#parts.upstream.keepsAdministrator === true
      return isKept && !call.impersonates ? { ...read, unasked: untrusted } : read
    } catch (error) {
      call.formOf(this.#servedBy(known, undefined))
      throw error
    }
  }

  async #elsewhere(first: ReadRoute, wanted: ReadCall): Promise<Response> {
    const { known, call } = wanted
    let asked = wanted
    let { read } = asked
    for (let route = first; ; route = this.#parts.front.route(read)) {
      switch (route.kind) {
        case 'local':
          return await this.#local(asked, route)
        case 'confirm':
          return await this.#confirm(asked, route)
        case 'forward': {
          const answer = await this.#spokenFor(asked)
          if (answer === undefined) {
            // The hub does not speak for this caller, as was not known: it is read as for any such caller.
            read = { ...read, isKeptHere: true, unasked: nameless }
            asked = { ...asked, read }
            break
          }
          if (read.verb === 'get' && answer.status === 200) this.#parts.front.found(read)
          return answer
        }
        case 'freshen':
          await this.#parts.upstream.freshen?.(this.#parts.upstream.reachability.limitMs)
          read = { ...read, isAsked: true }
          break
        case 'prove':
          await route.judged
          read = { ...read, isProved: true }
          break
        case 'hold': {
          if (isWatchList(read, call.api)) return this.#later(asked, route.mirrored)
          const outcome = await route.mirrored.synced(mirrorLimits.holdMsMax)
          if (outcome === 'late') throw notSynced(known.resource.resource)
          if (outcome === 'refused' || !(await this.#mayStill(asked))) {
            return await this.#pass(asked)
          }
        }
      }
    }
  }

  /** What is not answered here, wherever it is judged: the API server's answer, as its caller sees it. */
  pass(known: KnownResource | undefined, call: Call): Promise<Response> {
    const { views, forwarder, authentication } = this.#parts
    const { api, request, identity } = call
    const isRead = request.method === 'GET' && (api.verb === 'get' || api.verb === 'list' || api.verb === 'watch')
    if (views === undefined || !isRead || call.impersonates) return forwarder.pass(call)
    const named = identity.kind === 'certificate' ? identity.name : ''
    const caller = authentication.callerOf(call)?.name ?? named
    const { group, version, resource, namespace } = api
    const seeing = views.of(caller, scopeOfName({ group, version, resource, namespace }, api.name))
    if (seeing === undefined) return forwarder.pass(call)
    // How it is spelled is known in a moment, and as it is it must not be seen.
    if (known === undefined) throw notSynced(resource)
    return this.#pass({ known, read: readOf(known, call, caller), call, seeing })
  }

  /** Undefined: the hub does not speak for the caller. */
  async #spokenFor(asked: ReadCall): Promise<Response | undefined> {
    try {
      return await this.#pass(asked, { isRouted: true })
    } catch (error) {
      if (error instanceof Unspoken) return undefined
      throw error
    }
  }

  async #pass(asked: ReadCall, { isRouted = false } = {}): Promise<Response> {
    const { forwarder } = this.#parts
    const { known, call, seeing } = asked
    if (seeing === undefined) return await forwarder.pass(call, { isRouted })
    const served = this.#seenBy(seeing, this.#servedBy(known, undefined))
    // What cannot be had is refused before anything is asked.
    call.formOf(served)
    const refused = this.#otherwise(served, asked, seeing)
    if (refused !== undefined) return refused
    return await seenReply(this.#parts, served, call, await forwarder.pass(call, { ...asJson, isRouted }))
  }

  /** What was decided before a read was held may have changed meanwhile. */
  async #mayStill({ call }: ReadCall): Promise<boolean> {
    return (await this.#parts.authorization.decide(call)) === 'allowed'
  }

  #local(
    asked: ReadCall,
    route: { cache: Cache; mirrored: MirroredInterest | undefined; warning?: string },
  ): Promise<Response> | Response {
    const { cache, mirrored, warning } = route
    const response = this.#spell(this.#servedBy(asked.known, mirrored), cache, asked)
    if (warning === undefined) return response
    const warned = (answer: Response) => this.#warned(answer, warning)
    return response instanceof Promise ? response.then(warned) : warned(response)
  }

  /** The age is told in seconds: within one, all that are warned are told the same. */
  #warned(answer: Response, warning: string): Response {
    if (this.#lastWarning.text !== warning) {
      warn(answer, [warning])
      this.#lastWarning = { text: warning, header: answer.headers.warning ?? '' }
    } else if (this.#lastWarning.header !== '') answer.headers.warning = this.#lastWarning.header
    return answer
  }

  #spell(plain: Served, cache: Cache, asked: ReadCall): Promise<Response> | Response {
    const { known, read, call, seeing } = asked
    const served = seeing === undefined ? plain : this.#seenBy(seeing, plain)
    const refused = seeing && this.#otherwise(served, asked, seeing)
    if (refused !== undefined) return refused
    switch (read.verb) {
      case 'get': {
        // What was just written through us and has not come back yet (A7).
        const newer = this.#parts.readYourWrites.newer(read.scope, read.key ?? '', cache)
        const item = newer !== undefined && newer.version >= read.version ? newer : undefined
        if (call.api.subresource === 'scale') {
          const { scale } = known
          return getScale(this.#parts, served, { item: item ?? cache.get(read.key ?? ''), scale }, call)
        }
        if (item !== undefined) return getItem(this.#parts, served, item, call)
        return getObject(this.#parts, served, cache, call)
      }
      case 'list':
        return listObjects(this.#parts, served, cache, call)
      case 'watch': {
        if (seeing !== undefined) return this.#watchSeen(served, cache, call, seeing)
        const identity = this.#listenerOf(call)
        const opened = (end: () => void) => this.#parts.watches.add(identity, call.question, end)
        return watchObjects(this.#parts, served, cache, call, opened)
      }
    }
  }

  /** The caller that the API server is asked about while a watch is open. One for another caller was judged here only while it was away. */
  #listenerOf(call: Call): Identity {
    const caller = call.impersonates ? this.#parts.authentication.callerOf(call) : undefined
    return caller === undefined ? call.identity : { kind: 'local', caller }
  }

  #watchSeen(served: Served, cache: Cache, call: Call, { of }: Seeing): Promise<Response> | Response {
    return watchObjects(this.#parts, served, cache, call, (end, watcher) => {
      const over = this.#parts.watches.add(call.identity, call.question, end)
      const closed = of.opened(watcher)
      return () => {
        over()
        closed()
      }
    })
  }

  /** A watch resumes only what its client has seen in the same way; a list, or one that begins anew, shows it that. */
  #otherwise(served: Served, { read, call }: ReadCall, { of, caller }: Seeing): Response | undefined {
    if (read.verb === 'get') return undefined
    const { name } = interestOf(read.scope)
    const resumes = read.verb === 'watch' && read.state === 'version' && !call.watchOptions.initialEvents
    if (!resumes) of.listed(caller, name)
    else if (of.isOther(caller, name, read.version)) {
      return refusedWatch(call.formOf(served), tooOld(read.version, read.version + 1))
    }
    return undefined
  }

  #seenBy({ view }: Seeing, served: Served): Served & { readonly view: ClassView } {
    return { ...served, view }
  }

  /** The most recent state is the API server's to tell; where it does not within the limit, ours is shown, and said to be ours. */
  async #confirm(asked: ReadCall, route: Extract<ReadRoute, { kind: 'confirm' }>): Promise<Response> {
    const { forwarder, front, upstream } = this.#parts
    const { known, call, seeing } = asked
    const served = seeing && this.#seenBy(seeing, this.#servedBy(known, undefined))
    const options = served === undefined ? {} : asJson
    const held = this.#heldOf(asked, route)
    const reply = await forwarder.tryPass(call, upstream.reachability.limitMs, { ...options, held })
    // The copy may have come further meanwhile, and never goes back.
    if (reply === 'same') return await this.#local(asked, route)
    const answer = reply && served && call.formOf(served) ? await seenReply(this.#parts, served, call, reply) : reply
    return answer ?? (await this.#local(asked, { ...route, warning: front.ageOf(route.mirrored, late) }))
  }

  /**
   * What is said to be held, so that an upstream that compares need not send it: nothing where the copy could not show what the
   * API server would, in its form or with its version.
   */
  #heldOf({ known, read, call }: ReadCall, { cache, mirrored }: LocalRoute): HeldObject | undefined {
    const { key = '' } = read
    const item = cache.peek(key)
    if (this.#parts.release.isLater || item === undefined || item.uid === '') return undefined
    if (cache.cloud.peek(key)?.version !== item.version) return undefined
    try {
      call.formOf(this.#servedBy(known, mirrored))
    } catch {
      return undefined
    }
    return { uid: item.uid, version: item.version }
  }

  /** Headers at once, the rest when there is something to say: a modern reflector waits on the open stream. */
  #later(asked: ReadCall, mirrored: MirroredInterest): Response {
    const media = asked.call.formOf(this.#servedBy(asked.known, mirrored))
    const open = () => this.#opened(asked, mirrored, acceptOf(media))
    return { status: 200, headers: watchHeaders(media), body: new DeferredWatch(open), cutCleanly: true }
  }

  async #opened(
    asked: ReadCall,
    mirrored: MirroredInterest,
    accept: string,
  ): Promise<AsyncIterator<Buffer> | undefined> {
    const outcome = await mirrored.synced(watchListHoldMsMax)
    const { readable: cache } = mirrored
    // A caller that may no longer watch it gets the end of the stream, and its next watch the refusal.
    if (outcome === 'late' || !(await this.#mayStill(asked))) return undefined
    // The edge may not read it, its caller may: the headers that are out promise a form.
    const { body, status } =
      outcome === 'synced' && cache !== undefined
        ? await this.#local(asked, { cache, mirrored })
        : asked.seeing === undefined
          ? await this.#parts.forwarder.pass(asked.call, { accept })
          : await this.#pass(asked)
    if (status !== 200) return undefined
    return piecesOf(body)
  }

  /** How lists are called where no definition tells: as the API server called the one that was mirrored. */
  #servedBy(known: KnownResource, mirrored: MirroredInterest | undefined): Served {
    const { defined, resource } = known
    const listKind = defined ? resource.listKind : (mirrored?.listKind ?? resource.listKind)
    const byKind = this.#served.get(known) ?? new Map<string, Served>()
    this.#served.set(known, byKind)
    let served = byKind.get(listKind)
    if (served === undefined) {
      const resource = known.resource.listKind === listKind ? known.resource : { ...known.resource, listKind }
      const { fields, columns, deprecation } = known
      const spelling = new Spelling(resource, undefined, { verbatim: true })
      served = { resource, fields, columns, deprecation, spelling, avoidsProtobuf: this.#avoidsProtobuf }
      byKind.set(listKind, served)
    }
    return served
  }
}

const nameless = 'no credential is configured to ask the API server in the name of this caller'
const untrusted = 'its hub asks the API server nothing in the name of an administrator'
const late = { why: 'the API server did not answer in time' }

/** A stream whose headers are out waits longer than a request: its client shows a line every ten seconds and waits on. */
const watchListHoldMsMax = 60_000
