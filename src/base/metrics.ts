/** Counters and histograms in Prometheus' text form, by hand: a few numbers per label set, rendered only when asked. */

export type MetricLabels = Readonly<Record<string, string>>

/** Label sets beyond this are counted together: a client that can vary a label must not be able to fill the memory. */
const seriesMax = 2_000
const overflow = '__other__'

export class Counter {
  readonly #values = new Map<string, number>()

  add(series: string, amount = 1): void {
    const value = this.#values.get(series)
    if (value !== undefined) this.#values.set(series, value + amount)
    else if (this.#values.size < seriesMax) this.#values.set(series, amount)
    else this.#values.set(overflow, (this.#values.get(overflow) ?? 0) + amount)
  }

  render(name: string, help: string): string {
    return counter(name, help, this.#values)
  }
}

export class Histogram {
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, { counts: Float64Array; sum: number }>()

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
  }

  observe(series: string, value: number): void {
    let kept = this.#series.get(series)
    if (kept === undefined) {
      const name = this.#series.size < seriesMax ? series : overflow
      kept = this.#series.get(name) ?? { counts: new Float64Array(this.#bounds.length + 1), sum: 0 }
      this.#series.set(name, kept)
    }
    let bucket = 0
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket++
    kept.counts[bucket] = (kept.counts[bucket] as number) + 1
    kept.sum += value
  }

  render(name: string, help: string): string {
    const lines: string[] = [`# HELP ${name} ${help}\n# TYPE ${name} histogram\n`]
    for (const [series, { counts, sum }] of this.#series) {
      let total = 0
      counts.forEach((count, i) => {
        total += count
        const bound = i < this.#bounds.length ? String(this.#bounds[i]) : '+Inf'
        lines.push(`${name}_bucket${braced(joined(series, `le="${bound}"`))} ${total}\n`)
      })
      lines.push(`${name}_sum${braced(series)} ${sum}\n${name}_count${braced(series)} ${total}\n`)
    }
    return lines.join('')
  }
}

type Samples = Iterable<readonly [series: string, value: number]>

/** What goes up and down. */
export function gauge(name: string, help: string, values: Samples): string {
  return rendered(name, help, 'gauge', values)
}

/** What was counted elsewhere, and only grows while the process lives. */
export function counter(name: string, help: string, values: Samples): string {
  return rendered(name, help, 'counter', values)
}

/** Quantiles of what was observed elsewhere: each series has a label `quantile`. */
export function summary(name: string, help: string, values: Samples): string {
  return rendered(name, help, 'summary', values)
}

function rendered(name: string, help: string, type: 'gauge' | 'counter' | 'summary', values: Samples): string {
  let lines = ''
  for (const [series, value] of values) lines += `${name}${braced(series)} ${value}\n`
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines}`
}

/** `verb="get",resource="pods"`: a label set as the key of its series. */
export function seriesOf(labels: MetricLabels): string {
  return Object.entries(labels)
    .map(
      ([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (found) => (found === '\n' ? '\\n' : `\\${found}`))}"`,
    )
    .join(',')
}

function joined(series: string, more: string): string {
  return series === '' ? more : `${series},${more}`
}

function braced(series: string): string {
  if (series === overflow) return '{other="true"}'
  return series === '' ? '' : `{${series}}`
}
