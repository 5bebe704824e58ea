/** Options of `ake hub` alone: where edges and operators reach it, and how much it does for them. */
import type { Option } from '../option.ts'

export const hubOptions = [
  {
    name: 'host',
    env: 'AKE_HOST',
    type: 'host',
    commands: { hub: undefined },
    list: true,
    help: 'name or address by which edges reach this hub, besides those it listens on: its certificate bears it',
  },
  {
    name: 'health-listen',
    env: 'AKE_HEALTH_LISTEN',
    type: 'address',
    commands: { hub: '127.0.0.1:10003' },
    help: 'address for /livez, /readyz, /metrics and the status, over plain HTTP and open to whoever reaches it',
  },
  {
    name: 'trust-edges',
    env: 'AKE_TRUST_EDGES',
    type: 'switch',
    commands: { hub: 'false' },
    help: 'lets every edge have whatever the hub may read, and its administrator act with the credential of the hub: who takes one box has the cluster',
  },
  {
    name: 'legacy-impersonation',
    env: 'AKE_LEGACY_IMPERSONATION',
    type: 'switch',
    commands: { hub: 'false' },
    help: 'lets the hub speak for callers with certificates, where a policy allows it, also at an API server that does not constrain impersonation: there RBAC cannot keep a hub from being anybody',
  },
  {
    name: 'edge-requests-per-second',
    env: 'AKE_EDGE_REQUESTS_PER_SECOND',
    type: 'count',
    commands: { hub: '100' },
    help: 'how often the requests of one edge are passed on to the API server by each hub, with a burst of five times as many',
  },
  {
    name: 'caller-requests-per-second',
    env: 'AKE_CALLER_REQUESTS_PER_SECOND',
    type: 'count',
    commands: { hub: '50' },
    help: 'the same of one caller at one edge, with a burst of four times as many; at all edges together 40 times that. Tokens of one user are one caller where the hub knows whose they are',
  },
  {
    name: 'drain',
    env: 'AKE_DRAIN',
    type: 'duration',
    commands: { hub: '30s' },
    help: 'how long edges have to move to another hub once this one is told to end',
  },
] as const satisfies readonly Option[]
