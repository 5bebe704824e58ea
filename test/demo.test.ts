/** `ake demo` as a newcomer starts it: what it shows looks alive, and nothing of it stays. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { credentialsOf } from './edgeprocess.ts'
import { Client, runAke } from './process.ts'

/** Cold and next to others on two cores. */
const shownMsMax = 60_000

type Pod = { readonly status: { readonly phase: string; readonly containerStatuses: readonly { ready: boolean }[] } }
type Node = { readonly status: { readonly conditions: readonly { type: string; status: string }[] } }

test('the pods of the demo run on nodes that are ready, and with its terminal its folder goes', async () => {
  const { child, ended } = runAke(['demo'])
  const late = setTimeout(() => child.kill('SIGKILL'), shownMsMax)
  const shown = { url: '', kubeconfig: '' }
  const introduced = new Promise<void>((resolve, reject) => {
    createInterface(child.stdout as NodeJS.ReadableStream).on('line', (line) => {
      shown.url ||= /at (https:\/\/[\w.]+:\d+)/.exec(line)?.[1] ?? ''
      shown.kubeconfig ||= /export KUBECONFIG=(\S+)/.exec(line)?.[1] ?? ''
      if (shown.url !== '' && shown.kubeconfig !== '') resolve()
    })
    void ended.then(({ stderr }) => reject(new Error(`it ended before it was shown: ${stderr}`)))
  })
  await introduced.finally(() => clearTimeout(late))
  const folder = dirname(dirname(shown.kubeconfig))
  const client = new Client({ url: shown.url, credentials: credentialsOf(shown.kubeconfig) })
  try {
    const pods = await client.json<{ items: Pod[] }>('GET', '/api/v1/namespaces/shop/pods')
    assert.equal(pods.items.length, 3)
    for (const { status } of pods.items) {
      assert.equal(status.phase, 'Running')
      assert.deepEqual(
        status.containerStatuses.map(({ ready }) => ready),
        [true],
      )
    }
    const nodes = await client.json<{ items: Node[] }>('GET', '/api/v1/nodes')
    const isReady = ({ status }: Node) => status.conditions.some((one) => one.type === 'Ready' && one.status === 'True')
    assert.equal(nodes.items.filter(isReady).length, 2)
  } finally {
    client.close()
    // Twice, as from a shell and from the terminal.
    child.kill('SIGHUP')
    child.kill('SIGHUP')
  }
  assert.equal((await ended).code, 0)
  assert.equal(existsSync(folder), false)
})
