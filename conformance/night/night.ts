/**
 * One night of a technician: the cloud is cut, they look around with what a person types first, the node is started again, the
 * edge's certificate ends, the cloud returns and refuses it, it is renewed. A real control plane, a real kubelet (kubemark's)
 * and the real kubectl; what is printed is compared with night.txt, word for word. `--write` writes that file anew: then read it
 * as a tired operator would.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { difference } from '../kubectl.ts'
import { startOracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import * as commands from './commands.ts'
import { NightSite } from './site.ts'
import { Transcript } from './transcript.ts'

export const step: Step = { name: 'edge-night', tier: 'default', minutes: 3, run }

const expected = join(import.meta.dirname, 'night.txt')

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress, write } = context
  await mkdir(dir, { recursive: true })
  const { bin } = await buildKubernetes({ only: ['kubectl', 'kubemark'], progress })
  const oracle = await startOracle({ dir: join(dir, 'oracle'), controllers: true, signal, progress })
  const transcript = new Transcript({ dir, bin, signal })
  const site = new NightSite({ context, bin, oracle, transcript })
  try {
    await play(site, transcript, progress)
  } finally {
    await writeFile(join(dir, 'night.txt'), transcript.text)
    await site.end()
    oracle.stop()
  }
  if (write) await writeFile(expected, transcript.text)
  const findings = new Findings()
  compare(findings, transcript.text, await readFile(expected, 'utf8'))
  return findings.result
}

async function play(site: NightSite, transcript: Transcript, progress: (line: string) => void): Promise<void> {
  const chapter = async (title: string, lines: readonly string[], ...log: string[]) => {
    progress(title)
    transcript.chapter(title)
    for (const line of lines) await transcript.type(line)
    if (log.length > 0) transcript.quote(await site.logged(log))
  }
  await site.begin()
  await chapter('Evening: the cloud is there', commands.evening)
  await site.cut()
  await chapter('The cloud is gone: what a person types first', commands.firstCommands, 'outage')
  await site.reboot()
  await chapter('The node is started again, still without the cloud', commands.rebooted)
  await site.expire()
  await chapter("The edge's certificate ends", commands.expired, 'outage', 'credential')
  await site.returned()
  await chapter('The cloud is back, and refuses the certificate', commands.refused)
  await site.renew()
  await chapter('Morning: the certificate is renewed', commands.morning, 'outage', 'upstream')
}

/** Command by command, so that one that differs does not hide the others. */
function compare(findings: Findings, found: string, wanted: string): void {
  const [ours, theirs] = [found, wanted].map((text) => text.split(/^(?=\$ |## )/m)) as [string[], string[]]
  for (let at = 0; at < Math.max(ours.length, theirs.length); at++) {
    const [one = '', other = ''] = [ours[at], theirs[at]]
    findings.check(one === other, one.split('\n')[0] ?? '', one === other ? '' : `\n${difference(one, other)}`)
  }
}
