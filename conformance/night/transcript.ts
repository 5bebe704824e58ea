/**
 * What a person typed during the night and what they saw: one text, in which what differs from night to night (ages, addresses,
 * names that are drawn) is replaced by its name. The paths of a real node stand for the folders of the proof.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const ake = join(import.meta.dirname, '..', '..', 'bin')

/** No command of the night needs more than some seconds, even on a busy machine. */
const lineMsMax = 60_000

type Mask = readonly [RegExp, string]

const masks: readonly Mask[] = [
  [/(?<![0-9a-f])[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])/g, '<uid>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, '<time>'],
  [/(?<=^|[ (=])(?<!Exists for )(?:\d+[ydhms])+(?=[ ,.;:)]|$)/gm, '<age>'],
  [/\b\d+ s old/g, '<age> old'],
  [/(seconds=)[\d.]+/g, '$1<age>'],
  [/((?:refused|changes)=)\d+/g, '$1<count>'],
  [/\b(?!127\.0\.0\.1)\d{1,3}(?:\.\d{1,3}){3}\b/g, '<ip>'],
  [/\bv1\.\d+\.\d+\S*/g, '<release>'],
  [/(resourceVersion: ")\d+/g, '$1<version>'],
  [/(pod-template-hash=)[0-9a-f]+/g, '$1<hash>'],
  [/(ReplicaSet\/web-)[0-9a-f]+/g, '$1<hash>'],
  [/(X509SHA256=)[0-9a-f]+/g, '$1<hash>'],
  [/(kube-api-access-|debugger-)\w{5}\b/g, '$1<id>'],
  [/\b\d+(?:\.\d+)?[KMG]i\b/g, '<size>'],
  // A start without the cloud writes less than a Ki.
  [/(?<= )\d+(?= written$)/gm, '<size>'],
  [/(?<=\S) {2,}/g, '  '],
  [/ +$/gm, ''],
]

/** Of `ake status` and `ake check`. */
const ownMasks: readonly Mask[] = [
  // What is broken at the width of a terminal is one line here: it depends on how long an age is.
  [/\n {12,}(?=\S)/g, ' '],
  [/(?<=^- .*(?:\n {2}\S.*)*)\n {2}(?=\S)/gm, ' '],
  // So does where the name of a resource is cut.
  [/^([a-z]+)\.[\w.-]+…?(?= {2})/gm, '$1.…'],
  // Of an interest: its size, and how many watch it just now.
  [/^(\S+ {2}\S+ {2}\w+ {2}\d+ {2})\S+( {2}(?:<age>|never) {2}(?:<age>|standing) {2})\d+$/gm, '$1<size>$2<watches>'],
  // How often the kubelet has tried, and what.
  [/^(?:\S+ {2}system:node:edge-1 {2}\d+\n)+/gm, ''],
  [/(?<=^Writes refused .*)\(\d+\)/gm, '(<count>)'],
  // Less than a kibibyte has no unit.
  [/\b\d+(?= (?:of history|written)\b)/g, '<size>'],
]

/**
 * kubectl tells a warning once, but those of two ages are two: whether two requests fall into one second is chance. Which of
 * its requests is answered first is chance too where it makes several at once, so warnings stand before the rest.
 */
function warnedOnce(shown: string): string {
  const lines = shown.split('\n')
  const warnings = new Set(lines.filter((line) => line.startsWith('Warning: ')))
  return [...warnings, ...lines.filter((line) => !warnings.has(line))].join('\n')
}

type Parts = {
  /** Of the proof. */
  readonly dir: string
  /** Where kubectl is. */
  readonly bin: string
  readonly signal: AbortSignal
}

export class Transcript {
  readonly #parts: Parts
  /** What is typed and read here, and what it stands for in the proof. */
  readonly #names = new Map<string, string>()
  #text = ''

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get text(): string {
    return this.#text
  }

  name(shown: string, real: string): void {
    this.#names.set(shown, real)
  }

  chapter(title: string): void {
    this.#text += `${this.#text === '' ? '' : '\n'}## ${title}\n`
  }

  async type(line: string): Promise<void> {
    const { output, code } = await this.#run(this.#real(line))
    const shown = this.#shown(output, line.startsWith('ake ') ? [...masks, ...ownMasks] : masks)
    this.#text += `\n$ ${line}\n${warnedOnce(shown)}${code === '0' ? '' : `(exit ${code})\n`}`
  }

  /** Lines of the edge's log. */
  quote(lines: string): void {
    this.#text += `\nThe edge has logged:\n${this.#shown(lines, masks)}`
  }

  /** As a reader is to see it. */
  #shown(text: string, all: readonly Mask[]): string {
    let named = text
    for (const [shown, real] of this.#names) named = named.replaceAll(real, shown)
    const masked = all.reduce((so, [pattern, name]) => so.replace(pattern, name), named)
    return masked === '' || masked.endsWith('\n') ? masked : `${masked}\n`
  }

  #real(line: string): string {
    let real = line
    for (const [shown, meant] of this.#names) real = real.replaceAll(shown, meant)
    return real
  }

  /** Output and errors in the order in which they come, as in a terminal. */
  async #run(line: string): Promise<{ output: string; code: string }> {
    const { dir, bin, signal } = this.#parts
    const env = {
      PATH: [bin, ake, process.env.PATH].join(':'),
      HOME: dir,
      KUBECONFIG: join(dir, 'edge', 'admin.kubeconfig'),
      KUBECACHEDIR: join(dir, 'cache'),
      KUBECTL_KUBERC: 'false',
      TZ: 'UTC',
    }
    const child = spawn('sh', ['-c', `{ ${line}\n} 2>&1`], {
      cwd: import.meta.dirname,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
      signal,
      timeout: lineMsMax,
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    await once(child, 'close')
    return { output, code: String(child.exitCode ?? child.signalCode) }
  }
}
