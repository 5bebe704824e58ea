/** What containerd, its network plugin and the kubelet are told: all that they keep is in the machine they run in. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { image } from './image.ts'
import type { Machine } from './machine.ts'

export const runtimeSocket = '/run/containerd/containerd.sock'
export const kubeletPort = 10255
/** Where Debian has them. */
export const plugins = '/usr/lib/cni'

const criPlugin = 'plugins."io.containerd.grpc.v1.cri"'

/** Paths as both the machine and the host name them. */
export type Configured = { readonly containerd: string; readonly kubelet: string }

export type Wished = {
  readonly clientCa: string
  /** Fields of the kubelet's configuration besides, or instead. */
  readonly kubelet: object
}

export async function configure(machine: Machine, dir: string, wished: Wished): Promise<Configured> {
  const networks = join(dir, 'networks')
  await mkdir(networks, { recursive: true })
  await writeFile(join(networks, '10-pods.conf'), JSON.stringify(network))
  const containerd = join(dir, 'containerd.toml')
  await writeFile(containerd, containerdToml(networks))
  const kubelet = join(dir, 'kubelet.json')
  await writeFile(kubelet, JSON.stringify(kubeletConfiguration(machine, wished), null, 2))
  return { containerd, kubelet }
}

const network = {
  cniVersion: '0.4.0',
  name: 'pods',
  type: 'bridge',
  bridge: 'pods0',
  isGateway: true,
  ipam: {
    type: 'host-local',
    ranges: [[{ subnet: '10.88.0.0/24' }]],
    routes: [{ dst: '0.0.0.0/0' }],
    dataDir: '/var/lib/cni',
  },
}

function containerdToml(networks: string): string {
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "${runtimeSocket}"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"
[${criPlugin}]
sandbox_image = "${image}"
restrict_oom_score_adj = true
[${criPlugin}.cni]
bin_dir = "${plugins}"
conf_dir = "${networks}"
`
}

function kubeletConfiguration(machine: Machine, { clientCa, kubelet }: Wished): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { x509: { clientCAFile: clientCa } },
    readOnlyPort: kubeletPort,
    containerRuntimeEndpoint: `unix://${runtimeSocket}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: machine.cgroup,
    failCgroupV1: false,
    failSwapOn: false,
    // Root of a container host may lack the right to set it.
    oomScoreAdj: 0,
    makeIPTablesUtilChains: false,
    resolvConf: '',
    volumePluginDir: '/var/lib/kubelet/volume-plugins',
    // The disk and the memory are those of the host, and not what this proof is about.
    imageGCHighThresholdPercent: 100,
    evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '0.1%', 'imagefs.available': '0.1%' },
    ...kubelet,
  }
}
