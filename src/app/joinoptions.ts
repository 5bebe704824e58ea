/** Options of `ake join` alone: by what the hub is believed, and what is written on the machine that becomes an edge. */
import type { Option } from './option.ts'

export const joinOptions = [
  {
    name: 'token',
    env: 'AKE_TOKEN',
    type: 'token',
    commands: { join: undefined },
    required: { join: 'give what "ake hub token" printed, or @FILE, or - for standard input' },
    help: 'bootstrap token of "ake hub token"; others on the machine see it on the command line, not in a file or on standard input',
  },
  {
    name: 'ca-hash',
    env: 'AKE_CA_HASH',
    type: 'hash',
    commands: { join: undefined },
    list: true,
    required: { join: 'give the digest that "ake hub token" printed: without it anybody could be the hub' },
    help: "digest of the public key of the hub's authority, by which alone the hub is believed; of several any counts",
  },
  {
    name: 'name',
    env: 'AKE_NAME',
    type: 'name',
    commands: { join: undefined },
    help: 'name of the edge and of its node in the cluster; without it that of this machine',
  },
  {
    name: 'kubelet-kubeconfig',
    env: 'AKE_KUBELET_KUBECONFIG',
    type: 'file',
    commands: { join: undefined },
    help: "where the kubelet's kubeconfig is written; without it in DIR, as kubelet.kubeconfig",
  },
  {
    name: 'edge-config',
    env: 'AKE_EDGE_CONFIG',
    type: 'file',
    commands: { join: undefined },
    help: 'where the options of "ake edge" are written, unless a file is there; without it in DIR, as edge.yaml',
  },
  {
    name: 'replace',
    env: 'AKE_REPLACE',
    type: 'switch',
    commands: { join: 'false' },
    help: 'takes the name though a Node or an edge has it, and with it the policies of that name: says that the machine is gone, or is this one',
  },
  {
    name: 'wait',
    env: 'AKE_WAIT',
    type: 'duration',
    commands: { join: '1m' },
    help: 'how long the hub and the signature of the cluster are waited for',
  },
  {
    name: 'dry-run',
    env: 'AKE_DRY_RUN',
    type: 'switch',
    commands: { join: 'false' },
    help: 'asks the hub whether the token counts, shows what would be written, and requests and writes nothing',
  },
] as const satisfies readonly Option[]
