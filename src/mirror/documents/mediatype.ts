/**
 * Accept headers and content types of mirrored documents. What an API server makes of an Accept header is learned from its
 * answers; only while it cannot be asked is the nearest of the held forms chosen here.
 */

type MediaType = { readonly type: string; readonly params: ReadonlyMap<string, string>; readonly quality: number }

/** No client sends longer ones: they are passed on and not remembered. */
export const acceptCharactersMax = 1024

/** The header in one spelling: clauses in their order, types in lower case, parameters sorted, blanks gone. */
export function normalAccept(header: string | readonly string[] | undefined): string {
  const text = typeof header === 'string' ? header : (header ?? []).join(',')
  const clauses = text.split(',').map((one) => one.trim())
  const spelled = clauses.filter((one) => one !== '').map((clause) => spell(parse(clause)))
  return spelled.length === 0 ? '*/*' : spelled.join(',')
}

function parse(clause: string): MediaType {
  const [type = '', ...settings] = clause.split(';')
  const params = new Map<string, string>()
  let quality = 1
  for (const setting of settings) {
    const equals = setting.indexOf('=')
    if (equals < 0) continue
    const name = setting.slice(0, equals).trim()
    const value = setting.slice(equals + 1).trim()
    if (name === 'q') quality = Number(value) || 0
    else params.set(name, value)
  }
  return { type: type.trim().toLowerCase(), params, quality }
}

function spell({ type, params, quality }: MediaType): string {
  const settings = [...params].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `;${name}=${value}`)
  return `${type}${settings.join('')}${quality === 1 ? '' : `;q=${quality}`}`
}

/**
 * What tells two forms of one document apart: the content type of the answer, and the one parameter of a request that
 * changes the content without showing there.
 */
export function formOf(contentType: string, accept: string): string {
  const form = spell(parse(contentType))
  return isAggregated(form) && accept.includes('profile=nopeer') ? `${form};profile=nopeer` : form
}

export function isAggregated(form: string): boolean {
  return form.includes('as=APIGroupDiscoveryList')
}

/** Of the forms held, the one that an API server would most likely have chosen. */
export function nearestForm(forms: readonly string[], accept: string): string | undefined {
  const clauses = accept.split(',').map(parse)
  // A clause that asks for the aggregated form gets it, wherever it stands; the rest goes by quality, then by order.
  const ordered = [...clauses].sort((a, b) => rank(b) - rank(a) || b.quality - a.quality)
  const plainJson = forms.filter((one) => one.startsWith('application/json'))
  const offered = [...plainJson, ...forms.filter((one) => !plainJson.includes(one))].map((form) => ({
    form,
    media: parse(form),
  }))
  for (const clause of ordered) {
    const found = offered.find(({ media }) => satisfies(clause, media))
    if (found !== undefined) return found.form
  }
  return undefined
}

function rank(clause: MediaType): number {
  return clause.params.has('as') ? 1 : 0
}

function satisfies(clause: MediaType, held: MediaType): boolean {
  for (const name of ['as', 'g', 'v']) if (clause.params.get(name) !== held.params.get(name)) return false
  // OpenAPI's protobuf is asked for by a name with `@` and answered under one with a dot.
  const [type, own] = [clause.type.replace('@', '.'), held.type]
  return type === '*/*' || type === own || (type.endsWith('/*') && own.startsWith(type.slice(0, -1)))
}

export function acceptsGzip(header: string | readonly string[] | undefined): boolean {
  const text = typeof header === 'string' ? header : (header ?? []).join(',')
  return text.split(',').some((one) => {
    const { type, quality } = parse(one)
    return type === 'gzip' && quality > 0
  })
}

/**
 * Whether a client already has it. Discovery compares the header as a whole, as kube-apiserver does there; OpenAPI, which
 * Go's file server sends, takes lists, weak tags and `*`.
 */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string, exact: boolean): boolean {
  if (ifNoneMatch === undefined || etag === '') return false
  if (exact) return ifNoneMatch === etag
  const strong = (tag: string) => tag.trim().replace(/^W\//, '')
  return ifNoneMatch.trim() === '*' || ifNoneMatch.split(',').some((one) => strong(one) === strong(etag))
}
