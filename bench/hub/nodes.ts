/**
 * The cluster of a fleet whose hub does not trust its edges: each edge's node has pods that name the ConfigMaps which it wants, so that
 * its own name proves them, and a policy lets edges hold what a node may not read by itself.
 */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { load } from 'js-yaml'
import type { StoredRow } from '../apiserver.ts'
import type { Address } from '../bench.ts'
import { type Connection, connectTo } from '../client.ts'
import { makePods } from '../fixture.ts'
import { fleetName, ownName, ownNames, ownNamespace } from './fleet.ts'

/** Each names as many ConfigMaps as another. */
export const podsOfNode = 3
const namesOfPod = ownNames / podsOfNode

const policies = '/apis/ake.dev/v1alpha1/edgepolicies'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const servedMsMax = 60_000
const askAgainMs = 100

/** Of each edge its Node, its pods and its ConfigMaps. */
export function* rowsOfNodes(edges: number): Generator<StoredRow> {
  const { spec, ...pod } = makePods(1)[0]!.object as unknown as { metadata: object; spec: { volumes: object[] } }
  for (let edge = 0; edge < edges; edge++) {
    const nodeName = fleetName(edge)
    yield [
      `minions/${nodeName}`,
      { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName }, spec: {}, status: {} } as StoredRow[1],
    ]
    for (let index = 0; index < ownNames; index++) {
      const name = ownName(edge, index)
      const metadata = { name, namespace: ownNamespace }
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'app.conf': `of=${name}\n` } }
      yield [`configmaps/${ownNamespace}/${name}`, object]
    }
    for (let at = 0; at < podsOfNode; at++) {
      const name = `${nodeName}-pod-${at}`
      const named = Array.from({ length: namesOfPod }, (_, index) => {
        const config = ownName(edge, at * namesOfPod + index)
        return { name: `config-${index}`, configMap: { name: config, defaultMode: 420 } }
      })
      // Another label than what all edges have.
      const metadata = { name, namespace: ownNamespace, labels: { app: 'own' }, annotations: {} }
      const object = { ...pod, metadata, spec: { ...spec, nodeName, volumes: [...spec.volumes, ...named] } }
      yield [`pods/${ownNamespace}/${name}`, object]
    }
  }
}

/** What every edge has besides, and its node may not read: no edge is trusted for it, and no caller asked. */
const interests = [
  { apiGroups: [''], resources: ['pods', 'namespaces'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'] },
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'] },
  { apiGroups: ['scheduling.k8s.io'], resources: ['priorityclasses'] },
]

export async function allowInterests(real: Address): Promise<void> {
  const connection = await connectTo(real, 'h2')
  try {
    const manifest = await readFile(join(import.meta.dirname, '../../deploy/edgepolicy.yaml'), 'utf8')
    await create(connection, definitions, load(manifest) as object)
    const give = performance.now() + servedMsMax
    while ((await connection.ask({ path: policies })).status !== 200) {
      if (performance.now() > give) throw new Error('kube-apiserver does not serve EdgePolicies')
      await pause(askAgainMs)
    }
    const metadata = { name: 'fleet' }
    await create(connection, policies, {
      ...{ apiVersion: 'ake.dev/v1alpha1', kind: 'EdgePolicy', metadata, spec: { interests } },
    })
  } finally {
    connection.close()
  }
}

async function create(connection: Connection, path: string, object: object): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const { status, text } = await connection.ask({ method: 'POST', path, headers, body: JSON.stringify(object) }, true)
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${text?.slice(0, 500)}`)
}
