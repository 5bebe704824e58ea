/**
 * A request on its way: what is asked and in whose name, with all that is worked out of it. Each of these is worked out once,
 * when the first part of the way needs it: a selector may be as long as a URL, and most requests need few of them.
 */
import { type Question, questionOf } from '../access/question.ts'
import { narrowedTo, type SelectableFields } from '../kube/fields.ts'
import type { FieldSelector } from '../kube/fieldselector.ts'
import { type ListOptions, parseGetOptions, parseListOptions, type WatchOptions } from '../kube/listoptions.ts'
import { type MediaChoice, negotiate } from '../kube/negotiate.ts'
import type { ApiRequest } from '../kube/request.ts'
import { objectKey, type Resource } from '../kube/resource.ts'
import type { Identity } from '../upstream/upstream.ts'
import type { Request } from './endpoint.ts'
import { impersonates } from './identify.ts'

type Readable = { readonly resource: Resource; readonly avoidsProtobuf?: (() => boolean) | undefined }
type GetOptions = ReturnType<typeof parseGetOptions>

export class Call {
  readonly api: ApiRequest
  readonly request: Request
  readonly identity: Identity
  #question: Question | undefined
  #impersonates: boolean | undefined
  /** Of the one verb that it is. */
  #options: GetOptions | ListOptions | WatchOptions | undefined
  #fields: FieldSelector | undefined
  #form: MediaChoice | undefined
  #body: Promise<Buffer> | undefined

  constructor(parts: { api: ApiRequest; request: Request; identity: Identity }) {
    this.api = parts.api
    this.request = parts.request
    this.identity = parts.identity
  }

  /** What an authorizer is asked. */
  get question(): Question {
    this.#question ??= questionOf(this.api)
    return this.#question
  }

  /** It asks to be taken for another caller: only the API server can say whether it may. */
  get impersonates(): boolean {
    this.#impersonates ??= impersonates(this.request)
    return this.#impersonates
  }

  /** The whole body: read once, however many ask for it. */
  body(): Promise<Buffer> {
    this.#body ??= this.request.body()
    return this.#body
  }

  /** '' for what has none. */
  namespaceOf({ namespaced }: Resource): string {
    return namespaced ? this.api.namespace : ''
  }

  keyOf(resource: Resource): string {
    return objectKey(this.namespaceOf(resource), this.api.name)
  }

  /** What the keys of a list begin with. */
  prefixOf(resource: Resource): string {
    const namespace = this.namespaceOf(resource)
    return namespace === '' ? '' : `${namespace}/`
  }

  /** The form of the answer to a read; refuses what cannot be had. */
  formOf({ resource, avoidsProtobuf }: Readable): MediaChoice {
    if (this.#form === undefined) {
      const { verb } = this.api
      const shape = verb === 'list' || verb === 'watch' ? verb : 'object'
      this.#form = negotiate(this.request.headers.accept, { shape, resource, avoidsProtobuf })
    }
    return this.#form
  }

  get getOptions(): GetOptions {
    this.#options ??= parseGetOptions(this.api.query)
    return this.#options as GetOptions
  }

  listOptions(resource: Resource): ListOptions {
    this.#options ??= parseListOptions(this.api.query, 'list', this.prefixOf(resource))
    return this.#options as ListOptions
  }

  get watchOptions(): WatchOptions {
    this.#options ??= parseListOptions(this.api.query, 'watch')
    return this.#options as WatchOptions
  }

  /** The field selector of a list or a watch, narrowed to the name in its path, in the resource's own names. */
  fieldsOf({ fields }: { readonly fields: SelectableFields }): FieldSelector {
    if (this.#fields === undefined) {
      const { query, name } = this.api
      this.#fields = fields.resolve(name === '' ? query.fieldSelector : narrowedTo(name, query.fieldSelector))
    }
    return this.#fields
  }
}
