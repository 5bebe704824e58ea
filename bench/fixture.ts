/**
 * Pods as a busy cluster has them: fully defaulted, scheduled, running, 3.5 KB each, spread over 100 nodes and 20
 * namespaces. Deterministic, so that two runs and two servers hold the same bytes.
 */
import { chanceOf } from '../src/base/seeded.test-support.ts'

const nodeCount = 100
const namespaceCount = 20

/** A whole LIST of these is 17.4 MB. */
export const podCount = 5_000

/** The annotation that an update stamps with its time of sending; of constant width, so that sizes never change. */
export const stampKey = 'bench/sent'
export const stampWidth = 20

export type Pod = { readonly namespace: string; readonly name: string; readonly object: PodObject }
type PodObject = { metadata: { annotations: Record<string, string>; uid?: string; creationTimestamp?: string } }

export function namespaceName(index: number): string {
  return `team-${String(index % namespaceCount).padStart(2, '0')}`
}

export function nodeName(index: number): string {
  return `node-${String(index % nodeCount).padStart(3, '0')}`
}

export function makeNamespaces(): object[] {
  return Array.from({ length: namespaceCount }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespaceName(index), labels: { 'kubernetes.io/metadata.name': namespaceName(index) } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }))
}

export function makePods(count: number): Pod[] {
  const random = chanceOf(1)
  return Array.from({ length: count }, (_, index) => makePod(index, random))
}

function makePod(index: number, random: () => number): Pod {
  const app = `service-${String(Math.floor(index / 10) % 250).padStart(3, '0')}`
  const hash = letters(random, 10)
  const name = `${app}-${hash}-${letters(random, 5)}`
  const namespace = namespaceName(index)
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${app}-${hash}`, uid: uuid(random) }
  const metadata = {
    generateName: `${app}-${hash}-`,
    name,
    namespace,
    labels: {
      app,
      'pod-template-hash': hash,
      tier: index % 3 === 0 ? 'frontend' : 'backend',
    },
    annotations: {
      [stampKey]: '0'.repeat(stampWidth),
    },
    ownerReferences: [{ ...owner, blockOwnerDeletion: true, controller: true }],
  }
  const token = `kube-api-access-${letters(random, 5)}`
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: makeSpec(index, app, token),
    status: makeStatus(index, app, random),
  }
  return { namespace, name, object }
}

function makeSpec(index: number, app: string, token: string): object {
  const container = {
    name: app,
    image: `registry.example.com/shop/${app}:1.4.${index % 10}`,
    ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
    env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } }],
    resources: { limits: { cpu: '500m', memory: '256Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    volumeMounts: [
      { name: 'config', readOnly: true, mountPath: '/etc/app' },
      { name: token, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
    ],
    readinessProbe: {
      httpGet: { path: '/readyz', port: 8080, scheme: 'HTTP' },
      timeoutSeconds: 1,
      periodSeconds: 10,
      successThreshold: 1,
      failureThreshold: 3,
    },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  }
  return {
    volumes: [{ name: 'config', configMap: { name: `${app}-config`, defaultMode: 420 } }, tokenVolume(token)],
    containers: [container],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    serviceAccountName: 'default',
    serviceAccount: 'default',
    nodeName: nodeName(index),
    securityContext: {},
    schedulerName: 'default-scheduler',
    tolerations: ['not-ready', 'unreachable'].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 300,
    })),
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
  }
}

function tokenVolume(name: string): object {
  const namespace = { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }
  const sources = [
    { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    { downwardAPI: { items: [namespace] } },
  ]
  return { name, projected: { sources, defaultMode: 420 } }
}

function makeStatus(index: number, app: string, random: () => number): object {
  const since = new Date(Date.UTC(2026, 10, 1) + index * 1_000).toISOString().replace('.000', '')
  const address = `10.244.${index % nodeCount}.${2 + (Math.floor(index / nodeCount) % 250)}`
  const host = `192.168.1.${index % nodeCount}`
  const digest = () => Array.from({ length: 8 }, () => hex(random, 8)).join('')
  const image = `registry.example.com/shop/${app}`
  return {
    phase: 'Running',
    conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(
      (type) => ({
        type,
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: since,
      }),
    ),
    hostIP: host,
    podIP: address,
    podIPs: [{ ip: address }],
    startTime: since,
    containerStatuses: [
      {
        name: app,
        state: { running: { startedAt: since } },
        lastState: {},
        ready: true,
        restartCount: 0,
        image: `${image}:1.4.${index % 10}`,
        imageID: `${image}@sha256:${digest()}`,
        containerID: `containerd://${digest()}`,
        started: true,
      },
    ],
    qosClass: 'Burstable',
  }
}

function letters(random: () => number, count: number): string {
  const alphabet = 'bcdfghjklmnpqrstvwxz2456789'
  return Array.from({ length: count }, () => alphabet[Math.floor(random() * alphabet.length)]).join('')
}

function hex(random: () => number, count: number): string {
  return Math.floor(random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0')
    .slice(0, count)
}

export function uuid(random: () => number): string {
  return `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-a${hex(random, 3)}-${hex(random, 8)}${hex(random, 4)}`
}
