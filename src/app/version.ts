/** What this program is: its own version, the Kubernetes API it speaks, the Node it runs on. */
import ake from '../../package.json' with { type: 'json' }
import { gauge, seriesOf } from '../base/metrics.ts'
import { builtinFacts } from '../kube/builtin.ts'

export const akeVersion = ake.version

export function versionText(): string {
  return `ake ${ake.version}\nkubernetes API ${builtinFacts().kubernetes}\nnode ${process.versions.node}\n`
}

/** The same as a figure, which is always 1. */
export function buildInfo(): string {
  const labels = { version: ake.version, kubernetes: builtinFacts().kubernetes, node: process.versions.node }
  return gauge('ake_build_info', 'What runs here.', [[seriesOf(labels), 1]])
}
