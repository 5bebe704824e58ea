/**
 * Machines that join a fleet, against a real control plane that approves and signs: what `ake hub token` prints and `ake join` writes is all
 * that an edge and its kubelet get. Each way in which it can fail has its sentence and a second try that works; certificates that end soon are renewed
 * under a kubelet and a watch. One that was lost is revoked, and does not come back by its name.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { joinEdge } from '../../src/app/join.ts'
import { systemClock } from '../../src/base/clock.ts'
import { pemsIn } from '../../src/pki/certificate.ts'
import type { AkeProgram } from '../ake.ts'
import { Seat } from '../asking.ts'
import { Findings } from '../findings.ts'
import { prepareHollow } from '../hollow/node.ts'
import { ask } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { checkAuthority, checkDeleted } from './joined.ts'
import { checkRevoked } from './revoked.ts'
import { JoiningWorld } from './world.ts'

export const step: Step = { name: 'fleet-join', tier: 'default', minutes: 3, run }

const yearMs = 365 * 24 * 3600_000
const joinersMany = 20

async function run(context: StepContext): Promise<StepResult> {
  const world = await JoiningWorld.open(context)
  const findings = new Findings(context.progress)
  const part = (name: string, body: () => Promise<void>) =>
    context.only(name) ? findings.part(name, body) : Promise.resolve()
  try {
    await part('failures', () => checkFailures(world, findings))
    await part('half-way', () => checkHalfWay(world, findings))
    await part('many at once', () => checkMany(world, findings))
    await part('a deleted Node', () => checkDeleted(world, findings))
    await part('a machine that was lost', () => checkRevoked(world, findings))
    await part('another authority', () => checkAuthority(world, findings))
    await part('a kubelet, and renewal', () => checkKubelet(world, findings))
    return findings.result
  } finally {
    await world.stop()
  }
}

async function checkFailures(world: JoiningWorld, findings: Findings): Promise<void> {
  const words = await world.token()
  const data = world.folder('failing')
  const tried = [...words, '--data', data, '--name', 'edge-9', '--wait', '15s']
  const fails = async (what: string, args: readonly string[], sentence: RegExp) => {
    const { code, out, err } = await world.ake(args)
    findings.check(code === 2 && sentence.test(err) && out === '', what, { code, out, err })
    findings.check(!/[a-z0-9]{6}\.[a-z0-9]{16}/.test(err), `${what}: no token is told`, err)
  }
  const instead = (flag: string, value: string) => tried.map((word, at) => (tried[at - 1] === flag ? value : word))
  await fails('a wrong hash', instead('--ca-hash', `sha256:${'0'.repeat(64)}`), /is not the hub of --ca-hash/)
  const unknown =
    /the token does not count: it has expired, was deleted or is not written in full; make another with "ake hub token"/
  await fails('an unknown token', instead('--token', 'aaaaaa.aaaaaaaaaaaaaaaa'), unknown)
  const id = (words[words.indexOf('--token') + 1] ?? '').slice(0, 6)
  const secret = `/api/v1/namespaces/kube-system/secrets/bootstrap-token-${id}`
  const expires = (at: number) => {
    const body = { stringData: { expiration: new Date(at).toISOString() } }
    return ask(world.oracle, secret, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body,
    })
  }
  await expires(Date.now() - 1_000)
  // Its watch of Secrets tells the API server in a moment.
  await pause(1_000)
  await fails('an expired token', tried, unknown)
  const good = [...(await world.token()), '--data', data, '--name', 'edge-9', '--wait', '30s']
  await checkClock(world, findings, good)
  await world.until('a node is there', async () => {
    const { status } = await ask(world.oracle, '/api/v1/nodes', {
      method: 'POST',
      body: { metadata: { name: 'edge-9' } },
    })
    return status === 201 || status === 409
  })
  const ready = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
  const headers = { 'content-type': 'application/merge-patch+json' }
  await ask(world.oracle, '/api/v1/nodes/edge-9/status', { method: 'PATCH', headers, body: ready })
  await fails('a name that is taken', good, /a node of the name "edge-9" is in the cluster, and ready/)
  const dry = await world.ake([...good, '--replace', '--dry-run'])
  findings.check(dry.code === 0 && /nothing was requested or written/.test(dry.out), '--dry-run', dry)
  findings.equal(await world.requests(), [], 'nothing was requested by all of these')
  const again = await world.ake([...good, '--replace'])
  findings.check(again.code === 0 && /joined as node edge-9/.test(again.out), 'with --replace it joins', again)
  const rejoined = await world.ake(good)
  findings.check(rejoined.code === 0, 'and again by the certificate that it has', rejoined)
}

/** By the seam that tests have: this process cannot set the clock of the machine. */
async function checkClock(world: JoiningWorld, findings: Findings, words: readonly string[]): Promise<void> {
  const wordOf = (flag: string) => words[words.indexOf(flag) + 1] ?? ''
  const config = {
    ...{ hub: [world.url], token: { token: wordOf('--token') }, caHash: [wordOf('--ca-hash')], name: 'edge-9' },
    ...{ data: wordOf('--data'), kubeletKubeconfig: undefined, edgeConfig: undefined, replace: false, dryRun: false },
    ...{ listen: [{ host: '127.0.0.1', port: 10005 }], wait: 5_000 },
  }
  const clock = { ...systemClock, now: () => Date.now() - yearMs }
  const nothing = (async function* () {})()
  const said = await joinEdge(config, { told: () => undefined, stdin: nothing, clock }).catch(String)
  findings.check(
    /the clock of this machine says .* and that of the hub .*: set it/.test(said),
    'a clock a year back',
    said,
  )
}

/** Nobody signs, then the hub is gone: the second try goes on with the same request. */
async function checkHalfWay(world: JoiningWorld, findings: Findings): Promise<void> {
  const { oracle, hub } = world
  const before = (await world.requests()).length
  await oracle.kill(['controllers'])
  const words = [...(await world.token()), '--data', world.folder('half'), '--name', 'edge-8', '--wait', '12s']
  const trying = world.ake(words)
  await world.until('it has asked', async () => (await world.requests()).length > before)
  await hub.end('kill')
  const { code, err } = await trying
  findings.check(
    code === 1 && /(cannot be reached|broke off).*run the same command again/.test(err),
    'the hub is gone half-way',
    { code, err },
  )
  await hub.restart('kill')
  const unsigned = await world.ake(words)
  findings.check(
    unsigned.code === 1 && /nobody has approved the request ake-join-/.test(unsigned.err),
    'nobody approves',
    unsigned,
  )
  await oracle.restart({ only: ['controllers'] })
  const again = await world.ake(words.map((word) => (word === '12s' ? '60s' : word)))
  findings.check(again.code === 0, 'a second try works', again)
  findings.equal((await world.requests()).length - before, 1, 'with the request of the first')
}

async function checkMany(world: JoiningWorld, findings: Findings): Promise<void> {
  const words = await world.token()
  const asked = async () => (await readFile(world.audit, 'utf8')).split('\n').length
  const [startedMs, before] = [performance.now(), await asked()]
  const wordOf = (flag: string) => words[words.indexOf(flag) + 1] ?? ''
  const nothing = (async function* () {})()
  const done = await Promise.allSettled(
    Array.from({ length: joinersMany }, (_, at) =>
      joinEdge(
        {
          ...{ hub: [world.url], token: { token: wordOf('--token') }, caHash: [wordOf('--ca-hash')] },
          ...{
            name: `many-${at}`,
            data: world.folder(`many-${at}`),
            kubeletKubeconfig: undefined,
            edgeConfig: undefined,
          },
          ...{ replace: false, dryRun: false, listen: [{ host: '127.0.0.1', port: 10005 }], wait: 60_000 },
        },
        { told: () => undefined, stdin: nothing },
      ),
    ),
  )
  const failed = done.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))
  findings.equal(failed, [], `${joinersMany} machines join at once`)
  const seconds = (performance.now() - startedMs) / 1_000
  await pause(500)
  const each = ((await asked()) - before) / joinersMany
  findings.note(
    `${joinersMany} joins at once in ${seconds.toFixed(1)} s (${Math.round((joinersMany * 60) / seconds)} a minute); ${each.toFixed(1)} requests to the API server for each`,
  )
}

async function checkKubelet(world: JoiningWorld, findings: Findings): Promise<void> {
  const port = await world.freePort()
  const [name, data] = ['edge-1', world.folder('edge-1')]
  const joined = await world.ake([
    ...(await world.token()),
    '--name',
    name,
    '--data',
    data,
    '--listen',
    `127.0.0.1:${port}`,
  ])
  findings.check(joined.code === 0, 'it joins', joined)
  const kubeconfig = join(data, 'kubelet.kubeconfig')
  const edge = await world.startEdge(name)
  const kubelet = await prepareHollow({ dir: world.folder('kubelet'), morph: 'kubelet', node: name, kubeconfig })
  try {
    kubelet.start()
    type Node = { readonly status: { readonly conditions?: readonly { type: string; status: string }[] } }
    await world.until('the node is ready', async () => {
      const node = await world.read<Node>(`/api/v1/nodes/${name}`)
      return node?.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
    })
    findings.check(true, 'a kubelet that was started from what was written makes its node ready')
    await checkRenewal(findings, { edge, data, name })
    findings.check(!kubelet.ended, 'the kubelet lives')
  } finally {
    await kubelet.end()
    await edge.kill()
  }
}

type Renewing = { readonly edge: AkeProgram; readonly data: string; readonly name: string }

/** Under a watch and requests of the node, by the certificate that it joined with. */
async function checkRenewal(findings: Findings, { edge, data, name }: Renewing): Promise<void> {
  const read = () => readFile(join(data, 'credential.pem'), 'utf8')
  const ca = await readFile(join(data, 'pki', 'ca.crt'), 'utf8')
  const text = await read()
  const [cert] = pemsIn(text)
  const [key] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/.exec(text) ?? []
  const seat = new Seat({ url: edge.url, ca }, { cert: cert ?? '', key: key ?? '' })
  const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${name}`
  const first = await seat.ask(path)
  findings.equal(first.status, 200, 'the node lists its pods')
  const { metadata } = JSON.parse(first.body) as { metadata: { resourceVersion: string } }
  const watch = await seat.open(`${path}&watch=1&resourceVersion=${metadata.resourceVersion}`, {})
  let ended = false
  watch.on('end', () => {
    ended = true
  })
  watch.resume()
  const failures: string[] = []
  const certificates = new Set<string>()
  const endsMs = performance.now() + 60_000
  let asked = 0
  const headers = { 'content-type': 'application/merge-patch+json' }
  while (certificates.size < 3 && performance.now() < endsMs) {
    certificates.add(pemsIn(await read())[0] ?? '')
    for (const one of [
      { path },
      {
        path: `/api/v1/nodes/${name}`,
        method: 'PATCH',
        headers,
        body: { metadata: { annotations: { turn: `${asked}` } } },
      },
    ]) {
      const { status, body } = await seat
        .ask(one.path, one)
        .catch((error: unknown) => ({ status: 0, body: String(error) }))
      asked++
      if (status !== 200) failures.push(`${status} ${body.slice(0, 150)}`)
    }
    await pause(200)
  }
  seat.close()
  findings.check(certificates.size >= 2, 'the certificate was renewed', certificates.size)
  findings.equal(failures, [], `${asked} requests of the node while it was renewed`)
  findings.check(!ended, 'its watch stays open')
  findings.note(`${certificates.size - 1} renewals under ${asked} requests and a watch`)
}
