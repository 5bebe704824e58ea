/** What changes where something leads: pods that go, come, are bound and grow, volumes that are bound anew, all the rest. */
import type { Random } from '../site.ts'
import { attachments, type NodesWorld, namespaces, podPath, secrets, slices, volumes } from './world.ts'

type Change = {
  readonly name: string
  /** The resources of which more than others is asked afterwards. */
  readonly concerns: readonly string[]
  change(world: NodesWorld, random: Random): Promise<void>
}

const named = ['secrets', 'configmaps', 'persistentvolumeclaims', 'serviceaccounts', 'pods']
const [home = ''] = namespaces
const other = (i: number) => `extra${i}`

export const changes: readonly Change[] = [
  {
    name: 'pods come',
    concerns: named,
    change: async (world, random) => {
      for (let i = 0; i < 6; i++) await world.pod(home, other(i), random.of(['na-n1', 'na-n2', 'na-n3']))
    },
  },
  {
    name: 'a pod is deleted',
    concerns: named,
    change: async (world) => {
      for (const i of [0, 1]) await world.remove(`${podPath(home)}/${other(i)}`)
    },
  },
  {
    name: 'another pod of the same name names other things',
    concerns: named,
    change: async (world) => {
      await world.remove(`${podPath(home)}/${other(2)}`)
      await world.pod(home, other(2), 'na-n2', { volumes: [{ name: 'v', secret: { secretName: secrets[9] } }] })
    },
  },
  {
    name: 'another account',
    concerns: ['serviceaccounts'],
    change: async (world) => {
      await world.remove(`${podPath(home)}/${other(3)}`)
      await world.pod(home, other(3), 'na-n3', { serviceAccountName: 'robot' })
    },
  },
  {
    name: 'a pod is bound',
    concerns: named,
    change: async (world) => {
      await world.pod(home, 'late', undefined)
      const target = { apiVersion: 'v1', kind: 'Node', name: 'na-n3' }
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'late' }, target }
      await world.post(`${podPath(home)}/late/binding`, binding)
    },
  },
  {
    name: 'an ephemeral container names a Secret',
    concerns: ['secrets'],
    change: async (world) => {
      const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: secrets[8], key: 'k' } } }]
      const container = { name: 'e', image: 'registry.example/image:1', terminationMessagePolicy: 'File', env }
      await world.patch(`${podPath(home)}/late/ephemeralcontainers`, { spec: { ephemeralContainers: [container] } })
    },
  },
  {
    name: 'a claim of devices is made from its template',
    concerns: ['resourceclaims'],
    change: async (world) => {
      const resourceClaimStatuses = [{ name: 'made', resourceClaimName: 'made-1' }]
      await world.patch(`${podPath(home)}/late/status`, { status: { resourceClaimStatuses } })
    },
  },
  {
    name: 'a pod has run to its end',
    concerns: named,
    change: (world) => world.patch(`${podPath(home)}/late/status`, { status: { phase: 'Succeeded' } }),
  },
  {
    name: 'a mirror pod names what is not its own',
    concerns: ['configmaps', 'pods'],
    change: async (world) => {
      const metadata = { name: 'extra9', annotations: { 'kubernetes.io/config.mirror': 'x' } }
      const containers = [{ name: 'c', image: 'registry.example/image:1' }]
      const grabbed = [{ name: 'v', configMap: { name: 'c7' } }]
      const spec = { nodeName: 'na-n3', containers, volumes: grabbed }
      await world.make(podPath(home), { kind: 'Pod', metadata, spec })
    },
  },
  {
    name: 'volumes are bound anew',
    concerns: ['secrets', 'persistentvolumes', 'persistentvolumeclaims'],
    change: async (world, random) => {
      for (const name of volumes.slice(0, 6)) {
        const claimRef =
          random.below(3) === 0 ? null : { namespace: random.of(namespaces), name: `d${random.below(8)}` }
        await world.patch(`/api/v1/persistentvolumes/${name}`, { spec: { claimRef } })
      }
    },
  },
  {
    name: 'a volume goes',
    concerns: ['secrets', 'persistentvolumes'],
    change: async (world) => {
      for (const name of volumes.slice(6, 8)) await world.remove(`/api/v1/persistentvolumes/${name}`)
    },
  },
  {
    name: 'an attachment moves, a slice goes',
    concerns: ['volumeattachments', 'resourceslices'],
    change: async (world) => {
      await world.remove(`/apis/storage.k8s.io/v1/volumeattachments/${attachments[0]}`)
      await world.attach(attachments[0] as string, 'na-n2')
      await world.remove(`/apis/resource.k8s.io/v1/resourceslices/${slices[0]}`)
    },
  },
]
