/** `ake demo` as a newcomer starts it: what it shows looks alive, its switch cuts and mends, and nothing of it stays. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { credentialsOf } from './edgeprocess.ts'
import { Client, runAke, Watch } from './process.ts'

/** Cold and next to others on two cores. */
const shownMsMax = 60_000
const places = ['cloud', 'edge-1', 'edge-2'] as const
const sensors = '/apis/edge.example.com/v1/namespaces/shop/sensors'

type Pod = { readonly status: { readonly phase: string; readonly containerStatuses: readonly { ready: boolean }[] } }
type Node = { readonly status: { readonly conditions: readonly { type: string; status: string }[] } }
type Sensors = { readonly items: readonly { readonly metadata: { readonly resourceVersion: string } }[] }

// Of this file alone, so that no demo of this machine is met.
const temporary = mkdtempSync(join(tmpdir(), 'ake-demos-'))
process.env.TMPDIR = temporary
after(() => rmSync(temporary, { recursive: true, force: true }))

async function startDemo() {
  const { child, ended } = runAke(['demo'])
  const late = setTimeout(() => child.kill('SIGKILL'), shownMsMax)
  const lines: string[] = []
  const endpoints = new Map<string, { url: string; kubeconfig: string }>()
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stdout as NodeJS.ReadableStream).on('line', (line) => {
      lines.push(line)
      const [, kubeconfig, place] = /--kubeconfig (\S+) .*# at (\S+)/.exec(line) ?? []
      if (kubeconfig !== undefined && place !== undefined) {
        const [, url = ''] = /server: "?(https:[^\s"]+)/.exec(readFileSync(kubeconfig, 'utf8')) ?? []
        endpoints.set(place, { url, kubeconfig })
      }
      if (line.startsWith('line up')) resolve()
    })
    void ended.then(({ stderr }) => reject(new Error(`it ended before it was shown: ${stderr}`)))
  }).finally(() => clearTimeout(late))
  assert.deepEqual([...endpoints.keys()], places)
  const folder = dirname(dirname(endpoints.get('cloud')?.kubeconfig ?? ''))
  const pids = places.map((place) => Number(readFileSync(join(folder, place, 'pid'), 'utf8')))
  const clientOf = (place: (typeof places)[number]) => {
    const { url, kubeconfig } = endpoints.get(place) as { url: string; kubeconfig: string }
    return new Client({ url, credentials: credentialsOf(kubeconfig) })
  }
  return { child, ended, lines, folder, pids, clientOf }
}

async function turn(word: 'cut' | 'mend') {
  const { child, ended } = runAke(['demo', word])
  let stdout = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  const { code, stderr } = await ended
  return { code, stdout, stderr }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function newest(client: Client): Promise<number> {
  const { items } = await client.json<Sensors>('GET', `${sensors}?resourceVersion=0`)
  assert.equal(items.length, 5)
  return Math.max(...items.map(({ metadata }) => Number(metadata.resourceVersion)))
}

test('two edges have what the cloud has, go on while their line is cut, catch up in the same watch, and all of it goes', async () => {
  const { child, ended, lines, folder, pids, clientOf } = await startDemo()
  const [cloud, ...edges] = places.map(clientOf) as [Client, Client, Client]
  try {
    for (const edge of edges) await looksAlive(edge)
    const said = await turn('mend')
    assert.deepEqual(said, { code: 0, stdout: 'the line is up already\n', stderr: '' })
    const [first] = edges as [Client, Client]
    const seen = await newest(first)
    await until(async () => (await newest(first)) > seen, 'a change at an edge')
    const watch = new Watch(first, `${sensors}?watch=1&resourceVersion=${await newest(first)}`)

    assert.match((await turn('cut')).stdout, /^the line is cut: /)
    assert.equal((await turn('cut')).stdout, 'the line is cut already\n')
    const held = await Promise.all(edges.map(newest))
    await until(async () => (await newest(cloud)) >= Math.max(...held) + 4, 'changes at the cloud')
    assert.deepEqual(await Promise.all(edges.map(newest)), held)
    await until(
      () => lines.some((line) => /^line cut .*edge-1 .*lag [1-9].*edge-2 .*lag [1-9]/.test(line)),
      'lag shown',
    )

    assert.match((await turn('mend')).stdout, /^the line is mended: \d+ changes to catch up with/)
    const missed = await newest(cloud)
    await until(() => lines.some((line) => /^both edges have caught up .* 10 of 10 watches/.test(line)), 'caught up', {
      withinMs: 90_000,
    })
    await until(async () => (await Promise.all(edges.map(newest))).every((one) => one >= missed), 'in step')
    await watch.until((frames) => frames.some(({ object }) => Number(object.metadata.resourceVersion) >= missed))
  } finally {
    for (const client of [cloud, ...edges]) client.close()
    // Twice, as from a shell and from the terminal.
    child.kill('SIGHUP')
    child.kill('SIGHUP')
  }
  assert.equal((await ended).code, 0)
  const last = lines.find((line) => line.includes('reads at the edges'))
  assert.match(last ?? '', /^\d+ reads at the edges, 0 refused; .* 10 of 10 watches stayed open across 1 cut$/)
  assert.equal(existsSync(folder), false)
  assert.deepEqual(pids.filter(isAlive), [])
})

async function looksAlive(edge: Client): Promise<void> {
  const pods = await edge.json<{ items: Pod[] }>('GET', '/api/v1/namespaces/shop/pods')
  assert.equal(pods.items.length, 3)
  for (const { status } of pods.items) {
    assert.equal(status.phase, 'Running')
    assert.deepEqual(
      status.containerStatuses.map(({ ready }) => ready),
      [true],
    )
  }
  const nodes = await edge.json<{ items: Node[] }>('GET', '/api/v1/nodes')
  const isReady = ({ status }: Node) => status.conditions.some((one) => one.type === 'Ready' && one.status === 'True')
  assert.equal(nodes.items.filter(isReady).length, 2)
}

test('a demo whose server dies says so and goes; one that is killed takes its servers with it, and has no switch', async () => {
  const lamed = await startDemo()
  process.kill(lamed.pids[2] as number, 'SIGKILL')
  const { code, stderr } = await lamed.ended
  assert.equal(code, 1)
  assert.match(stderr, /^ake: edge-2 of the demo ended: .*\n$/)
  assert.equal(existsSync(lamed.folder), false)
  assert.deepEqual(lamed.pids.filter(isAlive), [])

  const killed = await startDemo()
  killed.child.kill('SIGKILL')
  await killed.ended
  await until(() => killed.pids.every((pid) => !isAlive(pid)), 'its servers end')
  const said = await turn('cut')
  assert.deepEqual([said.code, said.stdout], [1, ''])
  assert.match(said.stderr, /^ake: no demo of yours runs under \S+: start one with "ake demo" in another terminal\n$/)
})
