/** Another server's API behind the API server, as metrics are: registered, and read by kubectl directly and through an edge. */
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { runCommand } from './kubectl/shell.ts'
import { difference } from './kubectl.ts'
import { ask, type Oracle } from './oracle.ts'

type Shell = Parameters<typeof runCommand>[0]

const base = '/apis/metrics.k8s.io/v1beta1'
const availableMsMax = 30_000
const askAgainMs = 200

const usage = { timestamp: '2026-01-01T00:00:00Z', window: '10s', usage: { cpu: '250m', memory: '64Mi' } }
const answers: Readonly<Record<string, object>> = {
  [base]: {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: 'metrics.k8s.io/v1beta1',
    resources: [
      { name: 'nodes', singularName: '', namespaced: false, kind: 'NodeMetrics', verbs: ['get', 'list'] },
      { name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] },
    ],
  },
  [`${base}/nodes`]: {
    kind: 'NodeMetricsList',
    apiVersion: 'metrics.k8s.io/v1beta1',
    metadata: {},
    items: [{ metadata: { name: 'measured' }, ...usage }],
  },
}

const lines = [
  'kubectl api-resources --api-group=metrics.k8s.io',
  `kubectl get --raw ${base}/nodes`,
  'kubectl top nodes',
  'kubectl get apiservice v1beta1.metrics.k8s.io',
]

export async function proveAggregated(
  oracle: Oracle,
  [ours, real]: readonly [Shell, Shell],
): Promise<{ count: number; faults: string[] }> {
  const server = await serve(oracle)
  try {
    await Promise.all([ours, real].map(({ home }) => mkdir(home, { recursive: true })))
    await register(oracle, (server.address() as AddressInfo).port)
    const faults: string[] = []
    for (const line of lines) {
      const right = await runCommand(real, { line })
      let left = await runCommand(ours, { line })
      // Discovery at the edge follows within a moment.
      for (const give = performance.now() + availableMsMax; left !== right && performance.now() < give; ) {
        await pause(askAgainMs)
        left = await runCommand(ours, { line })
      }
      if (!right.endsWith('--- exit 0\n')) faults.push(`${line}\n  the API server itself says:\n${right}`)
      else if (left !== right) faults.push(`${line}\n${difference(left, right)}`)
    }
    return { count: lines.length, faults }
  } finally {
    await ask(oracle, '/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io', { method: 'DELETE' })
    server.closeAllConnections()
    server.close()
  }
}

async function serve({ dir }: Oracle): Promise<Server> {
  const [cert, key] = await Promise.all(['admin.crt', 'admin.key'].map((name) => readFile(join(dir, name))))
  const server = createServer({ cert, key }, ({ url = '' }, response) => {
    const found = answers[url.split('?', 1)[0] as string]
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(found ?? {}))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

async function register(oracle: Oracle, port: number): Promise<void> {
  const metadata = { name: 'metrics', namespace: 'default' }
  await post(oracle, '/api/v1/nodes', {
    metadata: { name: 'measured' },
    status: { allocatable: { cpu: '1', memory: '1Gi' } },
  })
  await post(oracle, '/api/v1/namespaces/default/services', {
    metadata,
    spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] },
  })
  await post(oracle, '/apis/apiregistration.k8s.io/v1/apiservices', {
    metadata: { name: 'v1beta1.metrics.k8s.io' },
    spec: {
      group: 'metrics.k8s.io',
      version: 'v1beta1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      insecureSkipTLSVerify: true,
      service: { ...metadata, port },
    },
  })
  const give = performance.now() + availableMsMax
  while ((await ask(oracle, `${base}/nodes`)).status !== 200) {
    if (performance.now() > give) throw new Error('the API server does not find the aggregated API')
    await pause(askAgainMs)
  }
}

async function post(oracle: Oracle, path: string, body: object): Promise<void> {
  const { status, body: said } = await ask(oracle, path, { method: 'POST', body })
  if (status !== 201) throw new Error(`${path}: ${status} ${said}`)
}
