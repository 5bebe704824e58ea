/** Where objects lead as they come, change and go: always as if only what is there now had ever been told. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seeded } from '../../base/seeded.test-support.ts'
import { NodeGraph } from './graph.ts'

const bytes = (object: object) => Buffer.from(JSON.stringify(object))

type PodWish = { readonly node?: string; readonly secrets?: readonly string[]; readonly claims?: readonly string[] }

function pod(name: string, { node, secrets = [], claims = [] }: PodWish): Buffer {
  const volumes = [
    ...secrets.map((secretName) => ({ secret: { secretName } })),
    ...claims.map((claimName) => ({ persistentVolumeClaim: { claimName } })),
  ].map((source, i) => ({ name: `v${i}`, ...source }))
  return bytes({
    metadata: { name, namespace: 'a' },
    spec: { ...(node === undefined ? {} : { nodeName: node }), volumes },
  })
}

function volume(name: string, claim: string | undefined, secret: string): Buffer {
  const claimRef = claim === undefined ? {} : { claimRef: { namespace: 'a', name: claim } }
  const csi = { driver: 'd', nodePublishSecretRef: { name: secret, namespace: 'a' } }
  return bytes({ metadata: { name }, spec: { csi, ...claimRef } })
}

test('the last pod that names something takes it along; one that has run to its end does not', () => {
  const graph = new NodeGraph()
  graph.put('pods', pod('p1', { node: 'n1', secrets: ['s'] }))
  graph.put('pods', pod('p2', { node: 'n1', secrets: ['s'] }))
  const isThere = () => graph.leads('secrets', 'a', 's', 'n1')
  assert.equal(graph.leads('secrets', 'a', 's', 'n2'), false)
  graph.remove('pods', 'a', 'p1')
  assert.equal(isThere(), true)
  const over = { metadata: { name: 'p2', namespace: 'a' }, status: { phase: 'Succeeded' } }
  graph.put('pods', bytes({ ...over, spec: { nodeName: 'n1', volumes: [{ secret: { secretName: 's' } }] } }))
  assert.equal(isThere(), true)
  graph.remove('pods', 'a', 'p2')
  assert.equal(isThere(), false)
  assert.equal(graph.leads('pods', 'a', 'p2', 'n1'), false)
})

test('a change that leads nothing elsewhere is told from one that does', () => {
  const graph = new NodeGraph()
  assert.equal(graph.put('pods', pod('p', { node: 'n1', secrets: ['s'] })), true)
  assert.equal(graph.put('pods', pod('p', { node: 'n1', secrets: ['s'] })), false)
  assert.equal(graph.put('pods', pod('p', { node: 'n1', secrets: ['t'] })), true)
  assert.equal(graph.remove('pods', 'a', 'p'), true)
  assert.equal(graph.remove('pods', 'a', 'p'), false)
})

test('a volume leads where its claim does, whichever is told first, and no longer once it is bound to another', () => {
  const graph = new NodeGraph()
  graph.put('persistentvolumes', volume('pv', 'data', 's'))
  assert.equal(graph.leads('secrets', 'a', 's', 'n1'), false)
  graph.put('pods', pod('p', { node: 'n1', claims: ['data'] }))
  assert.equal(graph.leads('secrets', 'a', 's', 'n1'), true)
  assert.equal(graph.leads('persistentvolumes', '', 'pv', 'n1'), true)
  graph.put('persistentvolumes', volume('pv', 'elsewhere', 's'))
  assert.equal(graph.leads('secrets', 'a', 's', 'n1'), false)
  assert.equal(graph.leads('persistentvolumeclaims', 'a', 'data', 'n1'), true)
})

test('after any changes in any order the graph is that of what is there', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const below = seeded(seed)
    const some = (kind: string) => [`${kind}${below(4)}`, `${kind}${below(4)}`]
    const grown = new NodeGraph()
    const there = new Map<string, ['pods' | 'persistentvolumes', Buffer]>()
    for (let step = 0; step < 200; step++) {
      const name = `o${below(6)}`
      const isPod = below(2) === 0
      const resource = isPod ? 'pods' : 'persistentvolumes'
      if (below(3) === 0) {
        grown.remove(resource, isPod ? 'a' : '', name)
        there.delete(`${resource} ${name}`)
        continue
      }
      const node = below(5) === 0 ? {} : { node: `n${below(2)}` }
      const told = isPod
        ? pod(name, { ...node, secrets: some('s'), claims: some('c') })
        : volume(name, below(4) === 0 ? undefined : `c${below(4)}`, `s${below(4)}`)
      grown.put(resource, told)
      there.set(`${resource} ${name}`, [resource, told])
    }
    const fresh = new NodeGraph()
    for (const [resource, told] of there.values()) fresh.put(resource, told)
    for (const node of ['n0', 'n1']) {
      for (let i = 0; i < 6; i++) {
        for (const [resource, namespace, name] of [
          ['secrets', 'a', `s${i}`],
          ['persistentvolumeclaims', 'a', `c${i}`],
          ['persistentvolumes', '', `o${i}`],
          ['pods', 'a', `o${i}`],
        ] as const) {
          const [ours, expected] = [grown, fresh].map((graph) => graph.leads(resource, namespace, name, node))
          assert.equal(ours, expected, `seed ${seed}: ${resource} ${name} to ${node}`)
        }
      }
    }
  }
})
