/** What this program is: its own version, the Kubernetes API it speaks, the Node it runs on. */
import ake from '../../package.json' with { type: 'json' }
import { builtinFacts } from '../kube/builtin.ts'

export const akeVersion = ake.version

export function versionText(): string {
  return `ake ${ake.version}\nkubernetes API ${builtinFacts().kubernetes}\nnode ${process.versions.node}\n`
}
