/** Prometheus and promtool as they are, without the service discoveries of clouds: what an operator alerts with. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../src/base/until.test-support.ts'
import { buildGoProgram } from './goprogram.ts'
import { freePorts } from './ports.ts'
import { Program } from './program.ts'

const readyMsMax = 60_000
const promtoolMsMax = 60_000

/** One series of an answer, with its value as Prometheus prints it. */
export type Sample = { readonly metric: Readonly<Record<string, string>>; readonly value: readonly [number, string] }

export type Alert = {
  readonly state: 'pending' | 'firing'
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export type Rule = {
  readonly name: string
  readonly state: 'inactive' | 'pending' | 'firing'
  /** `unknown` until it was evaluated. */
  readonly health: 'ok' | 'err' | 'unknown'
  readonly lastError?: string
  readonly alerts: readonly Alert[]
}

/** `notes` are what Prometheus finds strange in the expression, such as the rate of what is no counter. */
export type Found = { readonly samples: readonly Sample[]; readonly notes: readonly string[] }

export type Prometheus = {
  /** What an expression is now; throws where it cannot be evaluated. */
  query(expression: string): Promise<Found>
  rules(): Promise<readonly Rule[]>
  /** The values that a label has on the series of a selector. */
  labelValues(label: string, selector: string): Promise<readonly string[]>
  stop(): Promise<void>
}

export function buildPrometheus(program: 'prometheus' | 'promtool', progress: (line: string) => void): Promise<string> {
  return buildGoProgram('prometheus', progress, {
    package: `github.com/prometheus/prometheus/cmd/${program}`,
    tags: 'remove_all_sd',
  })
}

/** What promtool says to a file, or to what is given to it on its standard input. */
export function runPromtool(
  promtool: string,
  args: readonly string[],
  input = '',
): Promise<{ code: number; said: string }> {
  return new Promise((done) => {
    const child = execFile(promtool, args, { timeout: promtoolMsMax }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code ?? -1), said: stdout + stderr })
    })
    child.stdin?.end(input)
  })
}

type Options = {
  readonly program: string
  /** Where its configuration, log and data go. */
  readonly dir: string
  /** As prometheus.yml has it. */
  readonly config: object
  readonly signal: AbortSignal
}

/** Resolves when it is ready, by its own word. */
export async function startPrometheus({ program, dir, config, signal }: Options): Promise<Prometheus> {
  const [port] = (await freePorts(1)) as [number]
  const file = join(dir, 'prometheus.yml')
  // YAML takes JSON as it is.
  await writeFile(file, JSON.stringify(config))
  const log = join(dir, 'prometheus.log')
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${join(dir, 'tsdb')}`]
  const running = new Program({ program, args: [...args, `--web.listen-address=127.0.0.1:${port}`], log })
  const end = () => running.stop()
  signal.addEventListener('abort', end, { once: true })
  const stop = async () => {
    signal.removeEventListener('abort', end)
    await running.end()
  }
  running.start()
  const url = `http://127.0.0.1:${port}`
  const get = async <Data>(path: string, parameters: Record<string, string> = {}) => {
    const answer = await fetch(`${url}${path}?${new URLSearchParams(parameters)}`, { signal })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${path} ${JSON.stringify(parameters)}: ${answer.status} ${text}`)
    return JSON.parse(text) as { data: Data; warnings?: string[]; infos?: string[] }
  }
  try {
    const isReady = async () => {
      if (running.ended) throw new Error(`Prometheus ended before it was ready: see ${log}`)
      return (await fetch(`${url}/-/ready`, { signal }).catch(() => undefined))?.ok === true
    }
    await until(isReady, `Prometheus is ready: see ${log}`, { withinMs: readyMsMax, everyMs: 100, signal })
  } catch (error) {
    await stop()
    throw error
  }
  return {
    async query(expression) {
      type Result = { resultType: string; result: Sample[] }
      const { data, warnings = [], infos = [] } = await get<Result>('/api/v1/query', { query: expression })
      return { samples: data.resultType === 'vector' ? data.result : [], notes: [...warnings, ...infos] }
    },
    async rules() {
      const { data } = await get<{ groups: { rules: Rule[] }[] }>('/api/v1/rules', { type: 'alert' })
      return data.groups.flatMap((group) => group.rules)
    },
    labelValues: async (label, selector) =>
      (await get<string[]>(`/api/v1/label/${label}/values`, { 'match[]': selector })).data,
    stop,
  }
}
