/**
 * What `ake hub` does besides running a hub, one entry each: the words behind it, those in capitals being what the operator puts there,
 * what it does, and how. Each is imported when it runs.
 */
import { UsageError } from '../../base/fault.ts'
import { readConfig } from '../config.ts'

export type HubAction = {
  /** `issue NAME`. Its options stand in the table under `hub` and the words that are not in capitals. */
  readonly words: string
  readonly about: string
  /** Answers what to print. */
  run(args: readonly string[], named: string): Promise<string>
}

export const hubActions: readonly HubAction[] = [
  {
    words: 'issue NAME',
    about: `NAME is the edge's node in the cluster. FILE gets the certificate of system:node:NAME, its key and the hub's authority, and
is to be carried to that edge and to nobody else: who has it is that node to the hub, until the day that is printed.
The state is made where there is none; keep it as you keep the key of a cluster's authority.
Try: ake hub issue edge-1 --state ./hub --out ./edge-1.pem`,
    async run(args, name) {
      const config = await readConfig('hub issue', { args, env: process.env })
      const { hubIssue } = await import('./issue.ts')
      return await hubIssue(name, config)
    },
  },
  {
    words: 'token',
    about: `makes a bootstrap token in the cluster, with the rights of --kubeconfig, and prints the command with which any number of machines
join as edges until it ends. Whoever has it can become any node: one whose name no Node and no edge
has, and with --replace any other, with the policies of that name. Hand it on as you would a password.
Try: ake hub token --kubeconfig ./admin.kubeconfig --state secret:ake-system/hub --hub wss://hub.example.com`,
    async run(args) {
      const config = await readConfig('hub token', { args, env: process.env })
      const { hubToken } = await import('./token.ts')
      return await hubToken(config)
    },
  },
  {
    words: 'authority STEP',
    about: `the hub's own authority, and the steps to another one, which hubs that run take over within a minute and tell their edges.
STEP is show (hashes of all that are trusted), rotate (announces another one), switch (signs with it; edges renew what "ake hub issue" made
over their links) or retire (trusts it alone). "switch --compromised" does the last two at once and renews nothing, where others may have the key. Between the steps edges go on; one that was away from the first to the last needs a new credential.
Try: ake hub authority rotate --state secret:ake-system/hub --kubeconfig ADMIN`,
    async run(args, step) {
      const config = await readConfig('hub authority', { args, env: process.env })
      const { hubAuthority } = await import('./authority.ts')
      return await hubAuthority(step, config)
    },
  },
  {
    words: 'revoke NAME',
    about: `what was issued to the edge NAME before now counts no more: its links end within seconds at every hub, and none is made with it.
An edge that joined has a certificate of the cluster, which its thief may renew at the API server: --for-good keeps the name out, whatever is issued.
It is written into the EdgePolicy revoked-edges, which the kubeconfig's user must be allowed to create and update.
Try: ake hub revoke edge-1 --for-good --kubeconfig ADMIN`,
    async run(args, name) {
      const config = await readConfig('hub revoke', { args, env: process.env })
      const { hubRevoke } = await import('./revoke.ts')
      return await hubRevoke(name, config)
    },
  },
  {
    words: 'edges',
    about: `the edges that have a link to the hub whose --health-listen is there, and to its other replicas as far as it knows them (--service):
since when, until when their certificates are, and who signed them.`,
    async run(args) {
      const config = await readConfig('hub edges', { args, env: process.env })
      const { hubEdges } = await import('../status.ts')
      const { systemClock } = await import('../../base/clock.ts')
      return await hubEdges(config, systemClock)
    },
  },
  {
    words: 'policy test',
    about: `which rule of which EdgePolicy decides a question about an edge, by the policies and the Node as they are in the cluster now; no
hub has to run. Without a question it prints what all policies together say of the edge.
Try: ake hub policy test --node edge-1 --interest configmaps@shop-7 --kubeconfig ADMIN`,
    async run(args) {
      const config = await readConfig('hub policy test', { args, env: process.env })
      const { hubPolicyTest } = await import('./policytest.ts')
      return await hubPolicyTest(config)
    },
  },
  {
    words: 'restored',
    about:
      'says that the cluster was put back to an earlier state while no hub ran. One that runs notices it by itself.',
    async run(args) {
      const config = await readConfig('hub restored', { args, env: process.env })
      const { hubRestored } = await import('./restored.ts')
      return await hubRestored(config)
    },
  },
]

/** Undefined: the hub itself is to run. Throws `UsageError` for words that are none. */
export function hubActionOf(args: readonly string[]): (() => Promise<string>) | undefined {
  if (args[0] === undefined || args[0].startsWith('-')) return undefined
  for (const action of hubActions) {
    const words = action.words.split(' ')
    const isMeant = words.every((word, at) => (isOperand(word) ? isGiven(args[at]) : args[at] === word))
    if (!isMeant) continue
    const named = words.findIndex(isOperand)
    return () => action.run(args.slice(words.length), named < 0 ? '' : (args[named] as string))
  }
  const forms = hubActions.map(({ words }) => `"ake hub ${words} …"`)
  throw new UsageError(`"ake hub" runs a hub and does more for it: write "ake hub --state …", or ${forms.join(', ')}`)
}

/** As its options stand in the table. */
export function optionsName({ words }: Pick<HubAction, 'words'>): string {
  return ['hub', ...words.split(' ').filter((word) => !isOperand(word))].join(' ')
}

function isOperand(word: string): boolean {
  return /^[A-Z]+$/.test(word)
}

function isGiven(arg: string | undefined): boolean {
  return arg !== undefined && !arg.startsWith('-')
}
