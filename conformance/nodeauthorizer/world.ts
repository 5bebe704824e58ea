/**
 * Nodes with pods on a real control plane, and all that leads to them: references of every kind in pods, claims and volumes
 * of every driver with Secrets, attachments, slices. Made from a seed; whatever is made is taken away at the end.
 */
import { ask, type Oracle } from '../oracle.ts'
import type { Random } from '../site.ts'

export const namespaces = ['na-a', 'na-b']
/** The last one has no pods, and no Node either. */
export const nodes = ['na-n1', 'na-n2', 'na-n3', 'na-n4']

const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

export const secrets = many('s', 10)
export const configMaps = many('c', 8)
export const claims = many('d', 8)
export const volumes = many('na-pv', 12)
export const accounts = ['default', 'robot', 'other']
export const deviceClaims = many('g', 5)
export const attachments = many('na-va', 4)
export const slices = many('na-slice', 4)
export const pods = many('p', 24)

const paths = {
  persistentvolumes: '/api/v1/persistentvolumes',
  volumeattachments: '/apis/storage.k8s.io/v1/volumeattachments',
  resourceslices: '/apis/resource.k8s.io/v1/resourceslices',
} as const

export const podPath = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`

type NewObject = { readonly kind: string; readonly metadata: { readonly name: string }; readonly spec?: object }

export class NodesWorld {
  readonly #oracle: Oracle
  readonly #random: Random
  /** By path, so that it can be taken away. */
  readonly #made = new Set<string>()

  constructor(oracle: Oracle, random: Random) {
    this.#oracle = oracle
    this.#random = random
  }

  async fill(): Promise<void> {
    for (const namespace of namespaces) {
      await this.make('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: namespace } })
      const inside = `/api/v1/namespaces/${namespace}`
      for (const name of accounts)
        await this.make(`${inside}/serviceaccounts`, { kind: 'ServiceAccount', metadata: { name } })
      for (const name of secrets) await this.make(`${inside}/secrets`, { kind: 'Secret', metadata: { name } })
      for (const name of configMaps) await this.make(`${inside}/configmaps`, { kind: 'ConfigMap', metadata: { name } })
      for (const name of claims) await this.make(`${inside}/persistentvolumeclaims`, claim(name))
      for (const name of deviceClaims) {
        await this.make(`/apis/resource.k8s.io/v1/namespaces/${namespace}/resourceclaims`, deviceClaim(name))
      }
    }
    for (const name of nodes.slice(0, 3)) await this.make('/api/v1/nodes', { kind: 'Node', metadata: { name } })
    for (const [i, name] of volumes.entries()) await this.make(paths.persistentvolumes, this.#volume(name, i))
    for (const [i, name] of attachments.entries()) await this.attach(name, nodes[i % 2] as string)
    for (const [i, name] of slices.entries())
      await this.make(paths.resourceslices, slice(name, [nodes[0], nodes[1]][i]))
    for (const name of pods) {
      await this.pod(this.#random.of(namespaces), name, this.#random.of(['na-n1', 'na-n1', 'na-n2', undefined]))
    }
  }

  async make(path: string, object: NewObject): Promise<void> {
    const { name } = object.metadata
    const apiVersion = path.startsWith('/api/') ? 'v1' : path.split('/').slice(2, 4).join('/')
    const { status, body } = await ask(this.#oracle, path, { method: 'POST', body: { apiVersion, ...object } })
    if (status !== 201) throw new Error(`${path} ${name}: ${status} ${body}`)
    this.#made.add(`${path}/${name}`)
  }

  /** At once, whatever would keep it: no controller is there to finish anything. */
  async remove(path: string): Promise<void> {
    await this.patch(path, { metadata: { finalizers: null } })
    await ask(this.#oracle, `${path}?gracePeriodSeconds=0`, { method: 'DELETE' })
    this.#made.delete(path)
  }

  async patch(path: string, body: object): Promise<void> {
    const headers = { 'content-type': 'application/merge-patch+json' }
    const { status, body: said } = await ask(this.#oracle, path, { method: 'PATCH', headers, body })
    if (status !== 200) throw new Error(`PATCH ${path}: ${status} ${said}`)
  }

  async post(path: string, body: object): Promise<void> {
    const { status, body: said } = await ask(this.#oracle, path, { method: 'POST', body })
    if (status !== 201) throw new Error(`POST ${path}: ${status} ${said}`)
  }

  attach(name: string, nodeName: string): Promise<void> {
    const spec = { attacher: 'd.example', nodeName, source: { persistentVolumeName: volumes[0] } }
    return this.make(paths.volumeattachments, { kind: 'VolumeAttachment', metadata: { name }, spec })
  }

  /** A pod that names some of everything. */
  pod(namespace: string, name: string, node: string | undefined, more: object = {}): Promise<void> {
    const random = this.#random
    const secret = () => random.of(secrets)
    const configMap = () => random.of(configMaps)
    const env = [
      { name: 'A', valueFrom: { secretKeyRef: { name: secret(), key: 'k' } } },
      { name: 'B', valueFrom: { configMapKeyRef: { name: configMap(), key: 'k' } } },
    ]
    const envFrom = [{ secretRef: { name: secret() } }, { configMapRef: { name: configMap() } }]
    const container = { image: 'registry.example/image:1' }
    const sources = random.shuffled(podSources(secret, configMap, () => random.of(claims))).slice(0, 4)
    const spec = {
      ...(node === undefined ? {} : { nodeName: node }),
      ...(random.below(3) === 0 ? { imagePullSecrets: [{ name: secret() }] } : {}),
      ...(random.below(3) === 0 ? { initContainers: [{ ...container, name: 'i', env }] } : {}),
      containers: [{ ...container, name: 'c', ...(random.below(3) === 0 ? { envFrom } : {}) }],
      serviceAccountName: random.of(accounts),
      automountServiceAccountToken: random.below(2) === 0,
      volumes: sources.map((source, i) => ({ name: `v${i}`, ...source })),
      resourceClaims: [
        ...(random.below(3) === 0 ? [{ name: 'own', resourceClaimName: random.of(deviceClaims) }] : []),
        { name: 'made', resourceClaimTemplateName: 'template' },
      ],
      ...more,
    }
    return this.make(podPath(namespace), { kind: 'Pod', metadata: { name }, spec })
  }

  /** Mostly bound. */
  #volume(name: string, i: number): NewObject {
    const random = this.#random
    const claimRef = { kind: 'PersistentVolumeClaim', namespace: random.of(namespaces), name: random.of(claims) }
    const sources = volumeSources(() => ({ name: random.of(secrets), namespace: random.of(namespaces) }))
    const spec = {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      ...(sources[i % sources.length] as object),
      ...(random.below(5) === 0 ? {} : { claimRef }),
    }
    return { kind: 'PersistentVolume', metadata: { name }, spec }
  }

  async close(): Promise<void> {
    for (const path of [...this.#made].reverse()) {
      if (!path.startsWith('/api/v1/namespaces/na-') || path.includes('/pods/')) await this.remove(path).catch(() => {})
    }
    for (const namespace of namespaces) {
      await ask(this.#oracle, `/api/v1/namespaces/${namespace}`, { method: 'DELETE' })
    }
  }
}

function podSources(secret: () => string, configMap: () => string, claimName: () => string): object[] {
  const secretRef = { name: secret() }
  return [
    { secret: { secretName: secret() } },
    { configMap: { name: configMap() } },
    { projected: { sources: [{ secret: { name: secret() } }, { configMap: { name: configMap() } }] } },
    { persistentVolumeClaim: { claimName: claimName() } },
    { persistentVolumeClaim: { claimName: claimName() } },
    { ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
    { csi: { driver: 'd.example', nodePublishSecretRef: secretRef } },
    { azureFile: { secretName: secret(), shareName: 's' } },
    { cephfs: { monitors: ['m'], secretRef } },
    { rbd: { monitors: ['m'], image: 'i', secretRef } },
    { iscsi: { ...iscsi, secretRef } },
    { flexVolume: { driver: 'd/e', secretRef } },
    { storageos: { volumeName: 'v', secretRef } },
    { scaleIO: { ...scaleIO, secretRef } },
    { cinder: { volumeID: 'v', secretRef } },
  ]
}

function volumeSources(secret: () => { name: string; namespace: string }): object[] {
  const azure = secret()
  return [
    {
      csi: {
        driver: 'd.example',
        volumeHandle: 'h',
        nodeStageSecretRef: secret(),
        nodePublishSecretRef: secret(),
        nodeExpandSecretRef: secret(),
        controllerPublishSecretRef: secret(),
        controllerExpandSecretRef: secret(),
      },
    },
    { azureFile: { secretName: azure.name, secretNamespace: azure.namespace, shareName: 's' } },
    { cephfs: { monitors: ['m'], secretRef: secret() } },
    { rbd: { monitors: ['m'], image: 'i', secretRef: secret() } },
    { iscsi: { ...iscsi, secretRef: secret() } },
    { flexVolume: { driver: 'd/e', secretRef: secret() } },
    { scaleIO: { ...scaleIO, secretRef: secret() } },
    { storageos: { volumeName: 'v', volumeNamespace: 'n', secretRef: secret() } },
    { cinder: { volumeID: 'v', secretRef: secret() } },
    { hostPath: { path: '/x' } },
  ]
}

const iscsi = { targetPortal: '192.0.2.1:3260', iqn: 'iqn.2001-04.com.example:storage', lun: 0, chapAuthSession: true }
const scaleIO = { gateway: 'https://192.0.2.1', system: 's', volumeName: 'v' }
const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }

function claim(name: string) {
  return { kind: 'PersistentVolumeClaim', metadata: { name }, spec: claimSpec }
}

function deviceClaim(name: string) {
  const requests = [{ name: 'r', exactly: { deviceClassName: 'class.example' } }]
  return { kind: 'ResourceClaim', metadata: { name }, spec: { devices: { requests } } }
}

/** Of a node, or of all of them. */
function slice(name: string, nodeName: string | undefined) {
  const pool = { name, generation: 1, resourceSliceCount: 1 }
  const whose = nodeName === undefined ? { allNodes: true } : { nodeName }
  const spec = { driver: 'gpu.example.com', pool, devices: [{ name: 'd0' }], ...whose }
  return { kind: 'ResourceSlice', metadata: { name }, spec }
}
