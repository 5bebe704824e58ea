/** /healthz, /livez and /readyz with their single checks, in kube-apiserver's text form, and /version. */
import { requireJson } from '../../kube/negotiate.ts'
import type { ApiRequest } from '../../kube/request.ts'
import { methodNotAllowed } from '../../kube/status.ts'
import { pageNotFound, plain, text } from '../answer/respond.ts'
import type { NonResourcePaths, Request, Response } from '../endpoint.ts'

/** One check: undefined when all is well, otherwise why not. */
export type Check = {
  readonly name: string
  readonly ready: boolean
  run(): string | undefined
  /** What there is to say though all is well: shown where everything is. */
  note?(): string
  /** What is not well and yet no reason to send clients away; undefined: nothing. */
  warning?(): string | undefined
}

export class Health implements NonResourcePaths {
  readonly #checks: readonly Check[]
  /** Undefined where another part answers /version. */
  readonly #version: Buffer | undefined

  constructor(parts: { checks: readonly Check[]; version?: Readonly<Record<string, string>> }) {
    this.#checks = [{ name: 'ping', ready: false, run: () => undefined }, ...parts.checks]
    if (parts.version !== undefined) this.#version = Buffer.from(JSON.stringify(parts.version, null, 2))
  }

  answer(api: ApiRequest, { headers }: Request): Response | undefined {
    const [, kind = '', name, ...rest] = api.path.split('/')
    if (this.#version !== undefined && (api.path === '/version' || api.path === '/version/')) {
      if (api.method !== 'GET') throw methodNotAllowed()
      requireJson(headers.accept)
      return plain(200, this.#version)
    }
    if ((kind !== 'healthz' && kind !== 'livez' && kind !== 'readyz') || rest.length > 0) return undefined
    const checks = this.#checks.filter((check) => kind === 'readyz' || !check.ready)
    if (name !== undefined) return single(checks, name)
    return all(kind, checks, new Set(api.query.all('exclude')), api.query.has('verbose'))
  }
}

function single(checks: readonly Check[], name: string): Response {
  const check = checks.find((one) => one.name === name)
  if (check === undefined) return pageNotFound()
  const fault = check.run()
  if (fault !== undefined) return text(500, `internal server error: ${fault}\n`)
  const response = text(200, 'ok')
  delete response.headers['x-content-type-options']
  return response
}

function all(kind: string, checks: readonly Check[], excluded: Set<string>, verbose: boolean): Response {
  const lines: string[] = []
  let failed = false
  for (const { name, run, note, warning } of checks) {
    if (excluded.delete(name)) {
      lines.push(`[+]${name} excluded: ok`)
      continue
    }
    const fault = run()
    failed ||= fault !== undefined
    const warned = warning?.()
    if (fault !== undefined) lines.push(`[-]${name} failed: ${fault}`)
    else if (warned !== undefined) lines.push(`[!]${name}: ${warned}`)
    else lines.push(`[+]${name} ok${note === undefined ? '' : `: ${note()}`}`)
  }
  for (const name of excluded) lines.push(`warn: some health checks cannot be excluded: no matches for "${name}"`)
  if (failed) return text(500, `${lines.join('\n')}\n${kind} check failed\n`)
  return text(200, verbose ? `${lines.join('\n')}\n${kind} check passed\n` : 'ok')
}
