/**
 * `ake demo` and a real kubectl, with the very commands that it prints: at the cloud and at both edges, which read, write and
 * watch, also while its line is cut.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { until } from '../src/base/until.test-support.ts'
import { buildKubernetes } from './build.ts'
import { Findings } from './findings.ts'
import type { Step, StepContext, StepResult } from './step.ts'

export const step: Step = { name: 'demo', tier: 'all', minutes: 2, run }

const program = join(import.meta.dirname, '..', 'bin', 'ake')
const places = ['cloud', 'edge-1', 'edge-2']
/** Of its start, and of what comes back after a cut. */
const waitMsMax = 60_000
const execute = promisify(execFile)

type Said = { readonly code: number; readonly text: string }

async function run({ dir, signal, progress }: StepContext): Promise<StepResult> {
  await mkdir(dir, { recursive: true })
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  const findings = new Findings()
  // Of this step alone, so that `demo cut` meets no other.
  const env = { ...process.env, TMPDIR: dir, HOME: dir, KUBECTL_KUBERC: 'false' }
  const said = async (file: string, words: readonly string[]): Promise<Said> => {
    try {
      const { stdout, stderr } = await execute(file, words, { env, signal })
      return { code: 0, text: stdout + stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
      return { code, text: `${stdout}${stderr}` }
    }
  }
  const child = spawn(program, ['demo'], { env, stdio: ['ignore', 'pipe', 'ignore'], signal })
  const closed = once(child, 'close')
  closed.catch(() => undefined)
  /** By place, what kubectl is told there. */
  const told = new Map<string, readonly string[]>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [, words, place] = /^ *kubectl (.+?) +# at (\S+)$/.exec(line) ?? []
    if (words !== undefined && place !== undefined) told.set(place, words.split(' '))
  })
  try {
    await until(() => told.size === places.length, 'its commands', { withinMs: waitMsMax, signal })
    findings.equal([...told.keys()], places, 'a command for each place')
    const kubectl = (place: string, ...words: string[]) =>
      said(join(bin, 'kubectl'), [...(told.get(place) ?? []).slice(0, 2), ...words])
    const sensors = async (place: string) => {
      const words = (told.get(place) ?? []).filter((word) => word !== '--watch')
      const { code, text } = await said(join(bin, 'kubectl'), [...words, '-o', 'name'])
      const names = text.split('\n').filter((line) => line.startsWith('sensor.'))
      return `${code} ${names.join()}`
    }
    const atCloud = await sensors('cloud')
    findings.check(atCloud.startsWith('0 ') && atCloud.split(',').length === 5, 'five sensors', atCloud)
    for (const place of places) findings.equal(await sensors(place), atCloud, `${place}: the sensors`)
    for (const place of places) {
      const made = await kubectl(place, 'create', 'configmap', `by-${place}`, '-n', 'shop', '--from-literal=a=b')
      findings.equal(made, { code: 0, text: `configmap/by-${place} created\n` }, `${place}: a write`)
    }
    const arrived = async (place: string) =>
      (await kubectl(place, 'get', 'configmaps', '-n', 'shop', '-o', 'name')).text.match(/by-/g)?.length ===
      places.length
    for (const place of places)
      await until(() => arrived(place), `what was written, at ${place}`, { withinMs: waitMsMax, signal })

    const cut = await said(program, ['demo', 'cut'])
    findings.check(cut.code === 0 && cut.text.startsWith('the line is cut: '), 'it is cut', cut)
    for (const place of places) {
      findings.equal(await sensors(place), atCloud, `${place}: the sensors while the line is cut`)
      const { code } = await kubectl(place, 'create', 'configmap', `cut-${place}`, '-n', 'shop')
      findings.equal(code === 0, place === 'cloud', `${place}: a write while the line is cut`)
    }
    const mended = await said(program, ['demo', 'mend'])
    findings.check(mended.code === 0 && mended.text.startsWith('the line is mended: '), 'it is mended', mended)
    const isBack = async (place: string) =>
      (await kubectl(place, 'label', 'configmap', 'by-cloud', '-n', 'shop', `${place}=is-back`)).code === 0
    for (const place of places)
      await until(() => isBack(place), `writes again, at ${place}`, { withinMs: waitMsMax, everyMs: 500, signal })
    findings.note(`${places.length} places, while the line is up, cut and mended`)
  } finally {
    child.kill('SIGTERM')
    await closed
  }
  findings.equal(child.exitCode, 0, 'its end')
  return findings.result
}
