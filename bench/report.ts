/** The figures of results.json as documents: all of them by group for bench/RESULTS.md, and the README's few lines. Pure. */
import type { Figure } from './bench.ts'
import { goal, isMet, number, ratio, table } from './table.ts'

/** By question, so that asking one again leaves the others' answers. */
export type Results = {
  readonly [question: string]: { readonly when: string; readonly machine: string; readonly figures: readonly Figure[] }
}

/** Every question stands in one of them, and those of a group are compared with the same alternatives. */
const groups: readonly { readonly title: string; readonly questions: readonly string[] }[] = [
  { title: 'Reading', questions: ['list', 'get', 'nodename'] },
  { title: 'Watching', questions: ['watch'] },
  { title: 'Protobuf', questions: ['protobuf'] },
  { title: 'Other forms of a list', questions: ['forms'] },
  { title: 'Writing', questions: ['apply', 'commit'] },
  { title: 'Sealed at rest', questions: ['sealed'] },
  { title: 'Start and memory', questions: ['start', 'memory'] },
  { title: 'An edge: covered reads', questions: ['edgeread'] },
  { title: 'An edge: how much later an event comes, and what it costs', questions: ['edgewatch'] },
  { title: 'An edge: first lists and the line', questions: ['edgewatchlist', 'edgeuplink'] },
  { title: 'An edge: faults, starts and bursts', questions: ['edgestall', 'edgestart', 'edgeburst'] },
  { title: 'An edge: who asks and what it may', questions: ['authorize', 'edgeaccess', 'edgeroles', 'edgeidle'] },
  {
    title: 'The link to a hub: bytes and CPU of its parts',
    questions: ['link', 'session', 'tunnel', 'renewal', 'hublink', 'hubpeers', 'linkedfollow'],
  },
  { title: 'An edge behind a hub: its line and its lateness', questions: ['hubbytes', 'hubidle', 'hublatency'] },
  { title: 'A hub: what its edges cost it', questions: ['hubload', 'hubpods', 'hubrules', 'hubjoin'] },
  { title: 'An edge: memory', questions: ['edgememory', 'edgeoverlap'] },
]

/** What the README tells, by the names of figures. */
const chosen: readonly string[] = [
  'LIST of 5,000 pods, HTTP/2',
  'GET of a pod, HTTP/2',
  '1,000 watchers, 100 events/s (kube-apiserver: 10)',
  'start, 10,000 pods, to a first LIST of all',
  'memory, 10,000 pods, after 20 lists by one client',
  "edge watch, one node's pods, 20 events/s, p99",
  'edge, uplink of 20 informers and 1,000 events (kube-apiserver: without the edge)',
  'edge, start offline, to a first LIST of 10,000 pods',
]

/** Why a goal is missed, for figures whose name begins so and whose unit this is. */
const reasons: readonly { readonly name: string; readonly unit: string; readonly why: string }[] = [
  {
    name: 'memory of a watcher',
    unit: 'KB',
    why: 'it is resident memory, and so with the garbage of opening the watches: 20 to 26 KB from run to run.',
  },
  {
    name: 'durable commits, sealed',
    unit: 'commits/s',
    why: 'a sealed commit takes 9 µs longer, which a disk that takes 100,000 plain ones a second does not hide (20,000 are the goal of the store).',
  },
  {
    name: 'edge, LIST of 5,000 pods',
    unit: 'ms CPU',
    why: 'four fifths of both are TLS and the sockets of the system, and two processes of the very same code differ by more (of seven lives in `bench/beside.ts` with one state on both sides, from 0.92 to 2.1).',
  },
  {
    name: 'GET of a pod',
    unit: 'ms CPU',
    why: "of so small an answer's CPU most goes into Node's HTTP, its streams and system calls; our own files have about a fifth of it.",
  },
  {
    name: '1,000 watchers, 100 events/s, p99',
    unit: 'ms from update to delivery',
    why: '100,000 deliveries a second take most of one core and their readers the other one, so the last readers of an event wait for their turn.',
  },
  {
    name: 'edge, GET of a pod',
    unit: 'ms CPU',
    why: "an edge also looks for the caller, its right and the interest that covers the read, 3 to 5 of a GET's 30 µs.",
  },
  {
    name: 'edge watch',
    unit: 'ms CPU an event',
    why: 'what comes alone pays for TLS, HTTP/2 and waking up alone (a bare relay: 0.09 to 0.23 ms up to 100 events/s, by the machine), and at an edge for its own scan, commit and publication; only a burst shares them.',
  },
  {
    name: 'hub, from a write',
    unit: 'ms later',
    why: 'API server, etcd, hub, edge, writer and watcher share two busy cores, on which a plain watch took 135 ms at this rate.',
  },
  // The rows of one fleet merge into one sentence with those of the others.
  ...['hub, 1,000 edges', 'hub, 5,000 edges', 'hub, 10,000 edges'].flatMap((name) => [
    {
      name,
      unit: 'KB RssAnon',
      why: 'some 65 to 80 KB are what OpenSSL and Node hold natively for a mutual TLS connection that has sent a snapshot, 18 are the objects of its socket, session and tunnel, 45 those of 40 interests (1.1 KB each, with the view that no other edge shares); the rest, some 40 MB whatever the number of edges, is the young generation, which takes 16 MiB semispaces.',
    },
    {
      name,
      unit: 'µs CPU',
      why: 'an event alone is one write of TLS for each edge (a quarter of it), one read for its acknowledgement (a sixth), and the work of streams, session and conflation around both, most of it waiting for memory that no other edge shares, of which there is more with more edges; 7 % is garbage. Of a burst fewer events share a frame where there are more edges (the rows above), and each frame pays for itself.',
    },
  ]),
]

/** bench/RESULTS.md between its markers. */
export function resultsMarkdown(results: Results): string {
  for (const question of Object.keys(results))
    if (!groups.some(({ questions }) => questions.includes(question)))
      throw new Error(`bench/report.ts has no group for the question ${question}`)
  const sections = groups.flatMap(({ title, questions }) => {
    const figures = figuresOf(results, questions)
    return figures.length === 0 ? [] : [`## ${title}\n\n${table(figures)}`]
  })
  return `\n${[taken(results), ...sections, missed(figuresOf(results))].join('\n\n')}\n\n`
}

/** The README's lines between its markers. */
export function highlights(results: Results): string {
  const figures = figuresOf(results)
  const lines = chosen.flatMap((name) => figures.filter((figure) => figure.name === name)).map(highlight)
  const judged = figures.filter((figure) => isMet(figure) !== undefined)
  const met = judged.filter((figure) => isMet(figure))
  return `\n${lines.join('\n')}\n\n${met.length} of ${judged.length} goals are met; the others, and why, stand in\n[bench/RESULTS.md](bench/RESULTS.md) with every figure.\n\n`
}

function highlight({ name, unit, measured }: Figure): string {
  const others = Object.entries(measured).filter(([contestant]) => contestant !== 'ake')
  const beside = others.map(([contestant, value]) => `${contestant} ${number(value)}`).join(', ')
  return `- ${name}: **${number(measured.ake)}** ${unit}${beside === '' ? '' : ` (${beside})`}`
}

function figuresOf(
  results: Results,
  questions: readonly string[] = groups.flatMap((group) => group.questions),
): Figure[] {
  return questions.flatMap((question) => results[question]?.figures ?? [])
}

function taken(results: Results): string {
  const all = Object.values(results)
  const days = all.map(({ when }) => when.slice(0, 10)).sort()
  const machines = [...new Set(all.map(({ machine }) => machine))]
  const span = days[0] === days.at(-1) ? `on ${days[0]}` : `from ${days[0]} to ${days.at(-1)}`
  return `Taken ${span} on ${machines.join('; ')}.`
}

/** One sentence for each reason, with every figure that it concerns. */
function missed(figures: readonly Figure[]): string {
  const byReason = new Map<string, string[]>()
  for (const figure of figures) {
    if (isMet(figure) !== false) continue
    const why = reasons.find(({ name, unit }) => figure.name.startsWith(name) && figure.unit === unit)?.why
    const known = why ?? 'no cause is known yet.'
    byReason.set(known, [...(byReason.get(known) ?? []), `${figure.name} (${amount(figure)}, ${goal(figure)})`])
  }
  const sentences = [...byReason].map(([why, names]) => `- ${names.join('; ')}: ${why}`)
  return `## Goals missed\n\n${sentences.length === 0 ? 'None.' : sentences.join('\n')}`
}

function amount(figure: Figure): string {
  return figure.versus === undefined ? `${number(figure.measured.ake)} ${figure.unit}` : ratio(figure)
}
