/**
 * The command line: finds the command, reads its configuration, runs it until it ends or a signal asks it to. Commands
 * are imported when they run, so that `ake help` does not load a server. Exit codes: 0 done, 1 it cannot be had or is a
 * fault of ours, 2 the operator has to change something; `ake check` has its own: 0 yes, 1 no, 2 it cannot be told.
 */
import { systemClock } from '../base/clock.ts'
import { reasonOf, Unavailable, UsageError } from '../base/fault.ts'
import { createLog } from '../base/log.ts'
import { type Configs, isNear, readConfig } from './config.ts'
import { boundHeapGrowth } from './heapgrowth.ts'
import { hubActionOf, hubActions, optionsName } from './hub/actions.ts'
import { optionsHelp } from './options.ts'

type Command = {
  readonly summary: string
  /** More than the summary says, for `ake help COMMAND`. */
  readonly about: string
  /** What else it does: what follows its name then, and under which name those options stand in the table. */
  readonly actions?: readonly { readonly words: string; readonly options: string }[]
} & (
  | { run(args: readonly string[]): Promise<void> }
  /** Answers the exit code. */
  | { judge(args: readonly string[]): Promise<number> }
)

/** What `ake status` says, explained; within 100 columns as it is. */
const statusWords = `It asks the "ake edge" that runs on DIR, as its administrator, or with --health a hub. Whatever that
answers, the exit code is 0; it is 1 when none answers. --output json has everything.

Upstream   the API server: reachable; suspect (something took too long: no read waits for it);
           unreachable (what is mirrored is served, writes are refused); and why
Servers    the addresses that are tried, and which is in use
Identity   the credential with which the edge reads; Callers: those of --client-credential;
           Serving: the certificate that its clients see; and when each ends
Cluster    the uid of the namespace kube-system of the cluster that is mirrored
Store      whether the disk takes writes; how much history watches can resume from
Mirrored   how full the budget is: --mirror-bytes, and 1,000 interests
Reboot     whether the node would come back without the API server: "ake check" says why not

An interest is something that clients have asked for, and that is mirrored since. Its STATE:
synced     its watch is open
syncing    its first list is being read
waiting    for the API server, or before it asks again; why stands below, or at Upstream
fed        a wider interest covers it and feeds it
refused    the API server says 401, 403 or 404: the data stay until that is confirmed over minutes
withdrawn  it was confirmed: reads are passed through, the data go soon, "standing" ones too
failing    its first list does not come about: reads are passed through, it is tried again
tooLarge   it is larger than options allow: the data stay as they were
OBJECTS, SIZE, WATCHES are what it holds and who watches it here. HEARD: since the API server was
last heard of it. ASKED: since a client asked for it; "standing": an option did, and it never ends.
Passed through is what is not mirrored: it cannot be had without the API server.
Writes refused are those that could not be passed on since the line was cut.
Next is what a person should do, if anything.`

const commands: Readonly<Record<string, Command>> = {
  serve: {
    summary: 'serve the Kubernetes API from a folder on this machine',
    about: `The first start makes certificates and DIR/admin.kubeconfig. When ready it prints "ready https://HOST:PORT";
SIGTERM and Ctrl-C end it in order. Try: kubectl --kubeconfig ./ake-data/admin.kubeconfig get namespaces`,
    run: (args) =>
      untilSignal('serve', args, async (config, parts) => {
        const { serve } = await import('./serve.ts')
        await serve(config, { ...parts, ready: (url) => announce(url, parts) })
      }),
  },
  edge: {
    summary: 'mirror an API server on this machine, and go on serving when it cannot be reached',
    about: `What its clients read is mirrored in DIR and stays in step with the API server; what they write is passed on in their
own name. The first start makes certificates and DIR/admin.kubeconfig. When local reads can be answered it prints
"ready https://HOST:PORT"; SIGTERM and Ctrl-C end it in order. "ake status" tells how it fares.
Try: ake edge --kubeconfig ./edge.kubeconfig --mirror pods@default`,
    run: (args) =>
      untilSignal('edge', args, async (config, parts) => {
        const { edge } = await import('./edge.ts')
        await edge(config, { ...parts, ready: (url) => announce(url, parts) })
      }),
  },
  status: {
    summary: 'print how the edge on this machine fares (its API server, what it mirrors), or a hub',
    about: statusWords,
    async run(args) {
      const config = await readConfig('status', { args, env: process.env })
      const { status } = await import('./status.ts')
      process.stdout.write(await status(config, systemClock))
    },
  },
  check: {
    summary: 'print whether this node would come back from a reboot without its API server, and what to do',
    about: `It asks the "ake edge" that runs on DIR and was told its node (--node), as its administrator. The exit code is 0 for yes,
1 for no, 2 when it cannot be told.`,
    async judge(args) {
      const config = await readConfig('check', { args, env: process.env })
      const { check } = await import('./check.ts')
      const { text, code } = await check(config)
      ;(code === undefined ? process.stderr : process.stdout).write(text)
      return code ?? 2
    },
  },
  hub: {
    summary: 'stand between an API server and its edges, and give these their credentials',
    about: `A hub reads from the API server what its edges want, once for all of them, and tells each over its link what changed; their
requests are passed on in their callers' own names. Run several behind one Service, with one state in a Secret. When edges are let in it
prints "ready wss://HOST:PORT"; SIGTERM and Ctrl-C ask the edges to move and end it in order, a second one at once.
"ake status --health URL" tells how it fares.
Try: ake hub --kubeconfig ./hub.kubeconfig --state ./hub --host hub.example.com

${hubActions.map(({ words, about }) => `${words}: ${about}`).join('\n\n')}`,
    actions: hubActions.map((action) => ({ words: action.words, options: optionsName(action) })),
    async run(args) {
      const action = hubActionOf(args)
      if (action === undefined) await runHub(args)
      else process.stdout.write(await action())
    },
  },
  join: {
    summary: 'make this machine an edge: get its certificate with the token of "ake hub token"',
    about: `The hub is believed by --ca-hash and by nothing else. The cluster signs the certificate of the node, which goes into DIR/credential.pem
(0600) with its key; "ake edge" renews it. Beside it: the cluster's authorities, the options of "ake edge", and the kubelet's kubeconfig,
which leads to the edge and names the same certificate. It prints what it wrote and what to do next. Another run goes on where one broke
off, and renews what is there.
Try: ake join --hub wss://hub.example.com --token @./token --ca-hash sha256:… --name edge-1 --data /var/lib/ake`,
    async run(args) {
      const config = await readConfig('join', { args, env: process.env })
      const { joinEdge } = await import('./join.ts')
      const told = (line: string) => void process.stderr.write(`${line}\n`)
      process.stdout.write(await joinEdge(config, { told, stdin: process.stdin }))
    },
  },
  demo: {
    summary: 'show a cloud, a hub and two edges at work, and what a cut of the line between them does',
    about: `It runs "ake serve" with a small site that keeps changing, "ake hub --trust-edges" and two "ake edge --hub" as processes in a
temporary folder, which has their logs, and shows objects, versions and lag at each, bytes on the line, and watches that stay open. --listen
is the address of edge-1. It prints kubectl commands for each endpoint.
Keys: c cuts the line between the edges and the hub, m mends it, q ends the demo. Where its terminal takes no keys it tells a line now and
then, and cuts and mends by itself until the switch is first used. Everything is removed when it ends (q, Ctrl-C, or with its terminal).

cut, mend: turn the switch of the demo that runs, from another terminal. Of several, FOLDER says which: each tells its own.
The exit code is 1 where none runs.`,
    actions: [
      { words: 'cut [FOLDER]', options: 'demo cut' },
      { words: 'mend [FOLDER]', options: 'demo mend' },
    ],
    run: runDemo,
  },
  version: {
    summary: 'print the versions of ake, its Kubernetes API and Node',
    about: 'It takes no options.',
    async run(args) {
      refuseArguments('version', args)
      const { versionText } = await import('./version.ts')
      process.stdout.write(versionText())
    },
  },
  help: {
    summary: 'print this, or what a command does: ake help COMMAND',
    about: 'ake help COMMAND says what a command does and which options it takes.',
    async run([name, ...rest]) {
      refuseArguments('help', rest)
      process.stdout.write(name === undefined ? overview() : helpFor(name))
    },
  },
}

function announce(url: string, { signal }: { readonly signal: AbortSignal }): void {
  process.stdout.write(`ready ${url}\n`)
  boundHeapGrowth(signal)
}

/** How long a server that was told to end waits for the reader of what it printed, which may not keep it alive that way. */
const lastWordsMsMax = 2_000

/** Answers the exit code, once everything that was printed has been taken: a pipe holds less than a long status. */
export async function run(argv: readonly string[]): Promise<number> {
  // The reader of a pipe may leave early (`ake help | head -1`): no reason to crash.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
  const code = await runCommand(argv)
  const taken = Promise.all([process.stdout, process.stderr].map(untilTaken))
  if (stop.signal.aborted) {
    await Promise.race([taken, new Promise((resolve) => setTimeout(resolve, lastWordsMsMax))])
  } else await taken
  return code
}

/** Also when its reader has left. */
function untilTaken(output: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    output.write('', () => resolve())
  })
}

async function runCommand(argv: readonly string[]): Promise<number> {
  const [first, ...rest] = argv
  try {
    if (first === undefined)
      throw new UsageError('no command given: try "ake serve", "ake edge", "ake demo" or "ake help"')
    const name = alias(first)
    const command = find(name)
    if (rest.some((arg) => arg === '--help' || arg === '-h')) process.stdout.write(helpFor(name))
    else if ('judge' in command) return await command.judge(rest)
    else await command.run(rest)
    return 0
  } catch (error) {
    const sentence = sentenceOf(error)
    process.stderr.write(`ake: ${sentence ?? (error instanceof Error ? error.stack : String(error))}\n`)
    return sentence === undefined || error instanceof Unavailable ? 1 : 2
  }
}

type Running = { readonly log: ReturnType<typeof createLog>; readonly signal: AbortSignal }

/** Fires when a signal asks a server to end. */
const stop = new AbortController()

function runHub(args: readonly string[]): Promise<void> {
  return untilSignal('hub', args, async (config, parts) => {
    const { hub } = await import('./hub/hub.ts')
    await hub(config, { ...parts, ready: (url) => announce(url, parts) })
  })
}

async function runDemo(args: readonly string[]): Promise<void> {
  const [action, folder, ...rest] = args
  if (action === undefined || action.startsWith('-')) {
    await untilSignal('demo', args, async (config, parts) => {
      // With its terminal it ends, and cleans up. Servers are started without one, and leave the signal as it was.
      process.on('SIGHUP', () => stop.abort())
      const { demo } = await import('./demo/demo.ts')
      await demo(config, parts)
    })
    return
  }
  const { switchWords, turnSwitch } = await import('./demo/switch.ts')
  const word = switchWords.find((one) => one === action)
  if (word === undefined) {
    throw new UsageError(
      `"ake demo" runs a demo and turns its switch: write "ake demo", "ake demo cut" or "ake demo mend"`,
    )
  }
  refuseArguments(`demo ${word}`, folder?.startsWith('-') ? [folder] : rest)
  process.stdout.write(await turnSwitch(word, folder))
}

async function untilSignal<C extends 'serve' | 'edge' | 'hub' | 'demo'>(
  command: C,
  args: readonly string[],
  work: (config: Configs[C], parts: Running) => Promise<void>,
): Promise<void> {
  const config = await readConfig(command, { args, env: process.env })
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      // The second time the operator is impatient: the store opens clean after any end.
      if (stop.signal.aborted) process.exit(1)
      stop.abort()
    })
  }
  await work(config, { log: createLog({ level: config.logLevel }), signal: stop.signal })
}

function alias(first: string): string {
  if (first === '--help' || first === '-h') return 'help'
  return first === '--version' || first === '-v' ? 'version' : first
}

function find(name: string): Command {
  if (Object.hasOwn(commands, name)) return commands[name] as Command
  const close = Object.keys(commands).find((known) => isNear(known, name))
  throw new UsageError(`unknown command "${name}": ${close ? `did you mean "${close}"?` : 'see "ake help"'}`)
}

function refuseArguments(command: string, args: readonly string[]): void {
  if (args.length > 0) throw new UsageError(`"ake ${command}" takes no "${args[0]}": see "ake help ${command}"`)
}

/** One sentence for what the operator can put right; undefined for faults of ours, which show their stack. */
export function sentenceOf(error: unknown): string | undefined {
  if (error instanceof UsageError || error instanceof Unavailable) return error.message
  if (!(error instanceof Error)) return undefined
  const { syscall, code, address, port, hostname } = error as Error & Record<string, string | number | undefined>
  if (syscall === 'getaddrinfo') return `cannot find the address of ${hostname}: give an IP address with --listen`
  if (syscall !== 'listen') return undefined
  const where = `${String(address).includes(':') ? `[${address}]` : address}:${port ?? 0}`
  if (code === 'EADDRINUSE') return `${where} is in use: choose another address with --listen, or port 0 for a free one`
  return `cannot listen on ${where} (${reasonOf(error)}): choose another address with --listen`
}

function overview(): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(8)} ${summary}\n`)
  return `ake: a small Kubernetes API server\n\nusage: ake COMMAND [options]\n\n${rows.join('')}`
}

function helpFor(name: string): string {
  const { summary, about, actions = [] } = find(name)
  const forms = [{ words: '', options: name }, ...actions]
  const usages = forms.map(({ words, options }) => usageOf(`ake ${name} ${words}`.trimEnd(), optionsHelp(options)))
  return `ake ${name}: ${summary}\n\n${usages.join('\n')}\n${about}\n`
}

function usageOf(call: string, options: string): string {
  return options === '' ? `usage: ${call}\n` : `usage: ${call} [options]\n\n${options}`
}
