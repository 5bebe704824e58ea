/**
 * The cluster in which rights are tested: two nodes with a pod each, namespaces with something to hide, callers who may see
 * much, little and nothing; an edge in front of it, with no more rights than deploy/edge-rbac.yaml gives.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ake } from '../ake.ts'
import { type Person, Seat } from '../asking.ts'
import { startEdge } from '../edge/edge.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink } from '../link.ts'
import { ask, type Oracle } from '../oracle.ts'
import type { StepContext } from '../step.ts'
import {
  type Account,
  accountsOf,
  applyRbac,
  creatorOf,
  type Make,
  makePods,
  nodes,
  populate,
  signedToken,
} from './objects.ts'

export type RightsWorld = {
  readonly oracle: Oracle
  readonly link: Link
  /** Replaced when it is started again. */
  readonly edge: () => Ake
  readonly persons: ReadonlyMap<string, Person>
  readonly accounts: ReadonlyMap<string, Account>
  /** Of the pods p1 and p2. */
  readonly podUids: readonly string[]
  readonly edgeDir: string
  /** As somebody sees the API server, and the edge as it is now. */
  direct(person: string): Seat
  through(person: string): Seat
  /** A token with exactly this life, signed with the cluster's own key. */
  tokenEnding(account: string, seconds: number): Promise<string>
  readonly create: Make
  remove(path: string): Promise<void>
  restartEdge(how?: 'kill' | 'orderly'): Promise<void>
  close(): Promise<void>
}

export async function openRightsWorld(context: StepContext): Promise<RightsWorld> {
  await mkdir(context.dir, { recursive: true })
  const oracle = await context.oracle()
  const make = creatorOf(oracle)
  await applyRbac(oracle)
  await populate(make)
  const accounts = await accountsOf(make)
  const podUids = await makePods(make)
  const persons = new Map<string, Person>([['anonymous', {}]])
  for (const { namespace, name } of accounts.values()) {
    persons.set(name, { token: await oracle.tokenFor(namespace, name) })
  }
  persons.set('invented', { token: `${(persons.get('reader')?.token ?? '').split('.').slice(0, 2).join('.')}.AAAA` })
  persons.set('nonsense', { token: 'let-me-in' })
  const [n1, n2, edgeOwn] = await Promise.all([
    oracle.nodeCredential(nodes[0]),
    oracle.nodeCredential(nodes[1]),
    oracle.userCredential('edge-1', ['ake:edges']),
  ])
  persons.set('node', { cert: n1.cert, key: n1.key })
  // Its certificate is good, and no credential tells the edge how to act for it.
  persons.set('unmapped', { cert: n2.cert, key: n2.key })

  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  const kubeconfig = join(context.dir, 'edge.kubeconfig')
  const edgeDir = join(context.dir, 'edge')
  const options = {
    dir: edgeDir,
    server: link.url,
    kubeconfig,
    signal: context.signal,
    args: [
      ...['--client-ca', join(oracle.dir, 'ca.crt'), '--log-level', 'debug'],
      ...['--client-credential', `system:node:${nodes[0]}=${n1.certFile},${n1.keyFile}`],
    ],
  }
  await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, cert: edgeOwn.cert, key: edgeOwn.key })
  let edge = await startEdge(options)
  const seats = new Map<string, Seat>()
  const seat = (side: string, name: string, server: { url: string; ca: string }) => {
    const person = name === 'admin' ? edge : persons.get(name)
    if (person === undefined) throw new Error(`nobody is called ${name}`)
    const key = `${side} ${name}`
    const one = seats.get(key) ?? new Seat(server, person)
    seats.set(key, one)
    return one
  }
  const leave = () => {
    for (const one of seats.values()) one.close()
    seats.clear()
  }
  return {
    oracle,
    link,
    edge: () => edge,
    persons,
    accounts,
    podUids,
    edgeDir,
    direct: (name) => seat('direct', name, oracle),
    through: (name) => seat('through', name, edge),
    tokenEnding: (name, seconds) => signedToken(oracle, accounts.get(name)!, seconds),
    create: make,
    remove: async (path) => {
      const { status, body } = await ask(oracle, path, { method: 'DELETE' })
      if (status !== 200) throw new Error(`DELETE ${path}: ${status} ${body}`)
    },
    restartEdge: async (how = 'kill') => {
      leave()
      if (how === 'kill') await edge.kill()
      else await edge.stop()
      edge = await startEdge({ ...options, port: edge.port })
    },
    close: async () => {
      leave()
      await edge.kill()
      await link.close()
    },
  }
}
