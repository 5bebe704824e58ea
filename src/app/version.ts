/** What this program is: its own version, the Kubernetes API it speaks, the Node it runs on. */
import ake from '../../package.json' with { type: 'json' }

// The API level of the facts in src/kube; the endpoint's /version says the same.
const kubernetesLevel = 'v1.36.3'

export function versionText(): string {
  return `ake ${ake.version}\nkubernetes API ${kubernetesLevel}\nnode ${process.versions.node}\n`
}
