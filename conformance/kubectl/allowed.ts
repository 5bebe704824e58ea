/** The differences that stay, each with its reason. An entry that no line of the script needs is a failure. */

import type { Allowed } from './command.ts'

export const allowed: readonly Allowed[] = [
  {
    commands: /kubectl explain/,
    lines: /^ {4}(?!.*\t<)|^\s*$/,
    reason: 'the schemas of built-in kinds are served without descriptions: their prose is most of their bytes',
  },
  {
    commands: /kubectl auth whoami/,
    ours: /^ATTRIBUTE +VALUE\nUsername +ake-admin\nGroups +\[system:masters system:authenticated\]\n--- exit 0/,
    reason: "each server's administrator has a certificate of its own, and only the real one tells its digest",
  },
  {
    commands: /kubectl get apiservices,/,
    ours: /^--- errors\nNo resources found\n/,
    reason: 'ake makes no objects for aggregation, RBAC, flow control and address allocation: it does none of them',
  },
  {
    commands: /kubectl apply -f workloads.yaml -f kinds.yaml/,
    lines: /^--- errors$|^Warning: .* only stored by this server: /,
    reason: 'ake warns of quotas and limit ranges, which it does not enforce',
  },
  {
    commands: /kubectl (logs|exec) front-0 /,
    ours: /pods\/(log|exec): this server does not connect to nodes, pods or services/,
    reason: 'ake connects to no kubelet; the real server here tries, and finds none',
  },
]
