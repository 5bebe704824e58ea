/** The modes of kube-proxy: what each needs of the machine, and how its rules say where a service leads. */
import type { Machine } from '../node/machine.ts'

export type ProxyMode = {
  readonly name: 'nftables' | 'iptables' | 'ipvs'
  /** The rules of the machine's network; throws, with the reason, where this mode cannot work there. */
  rules(machine: Machine): Promise<string>
  /** What stands in the rules when a service leads there. */
  led(address: string, port: number): string
}

export const nftables: ProxyMode = {
  name: 'nftables',
  rules: (machine) => machine.run('nft', ['list', 'ruleset']),
  led: (address, port) => `${address} . ${port}`,
}

const iptables: ProxyMode = {
  name: 'iptables',
  rules: (machine) => machine.run('iptables-save', ['-t', 'nat']),
  led: (address, port) => `--to-destination ${address}:${port}`,
}

const ipvs: ProxyMode = {
  name: 'ipvs',
  rules: async (machine) => {
    // A kernel that has it as a module loads it for the first who asks.
    await machine.run('modprobe', ['ip_vs']).catch(() => undefined)
    await machine.run('ipset', ['list', '-name'])
    return await machine.run('cat', ['/proc/net/ip_vs'])
  },
  led: (address, port) => `${hexadecimal(address.split('.').map(Number), 2)}:${hexadecimal([port], 4)}`,
}

/** Besides the one that every proof needs. */
export const otherModes: readonly ProxyMode[] = [iptables, ipvs]

type Configured = { readonly kubeconfig: string; readonly nodeName: string; readonly mode: ProxyMode }

/** As kubeadm writes it, but for what it sets for the whole kernel. */
export function proxyConfiguration({ kubeconfig, nodeName, mode: { name: mode } }: Configured, more = {}): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode,
    hostnameOverride: nodeName,
    clientConnection: { kubeconfig },
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
    [mode]: { minSyncPeriod: '100ms', syncPeriod: '30s', ...more },
  }
}

function hexadecimal(numbers: readonly number[], digits: number): string {
  return numbers.map((number) => number.toString(16).padStart(digits, '0').toUpperCase()).join('')
}
