/** What pods, claims and volumes name. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain } from './json/json.ts'
import { mountsToken, referencesOf } from './references.ts'

const named = (resource: string, object: object) =>
  referencesOf(resource, fromPlain(object), 'n1').map(
    ({ group, resource: of, namespace, name }) => `${of}${group && `.${group}`} ${namespace}/${name}`,
  )

const pod = (spec: object, status: object = {}) => ({ metadata: { name: 'p', namespace: 'a' }, spec, status })
const volume = (source: object) => pod({ volumes: [{ name: 'v', ...source }] })

const rows: readonly (readonly [rule: string, resource: string, object: object, expected: readonly string[]])[] = [
  ['nothing', 'pods', pod({}), []],
  ['its account', 'pods', pod({ serviceAccountName: 'robot' }), ['serviceaccounts a/robot']],
  ['pull secrets', 'pods', pod({ imagePullSecrets: [{ name: 's' }, {}] }), ['secrets a/s']],
  ...['initContainers', 'containers', 'ephemeralContainers'].map(
    (kind) =>
      [
        `the environment of ${kind}`,
        'pods',
        pod({
          [kind]: [
            {
              env: [
                { name: 'PLAIN', value: 'x' },
                { name: 'A', valueFrom: { secretKeyRef: { name: 's1', key: 'k' } } },
                { name: 'B', valueFrom: { configMapKeyRef: { name: 'c1', key: 'k', optional: true } } },
                { name: 'C', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              ],
              envFrom: [{ secretRef: { name: 's2' } }, { configMapRef: { name: 'c2' } }],
            },
          ],
        }),
        ['secrets a/s1', 'configmaps a/c1', 'secrets a/s2', 'configmaps a/c2'],
      ] as const,
  ),
  ['a Secret as a volume', 'pods', volume({ secret: { secretName: 's' } }), ['secrets a/s']],
  ['a ConfigMap as a volume', 'pods', volume({ configMap: { name: 'c' } }), ['configmaps a/c']],
  [
    'what is projected',
    'pods',
    volume({
      projected: {
        sources: [
          { serviceAccountToken: { path: 'token' } },
          { configMap: { name: 'kube-root-ca.crt' } },
          { secret: { name: 's' } },
          { downwardAPI: { items: [] } },
        ],
      },
    }),
    ['configmaps a/kube-root-ca.crt', 'secrets a/s'],
  ],
  ['a claim', 'pods', volume({ persistentVolumeClaim: { claimName: 'data' } }), ['persistentvolumeclaims a/data']],
  ['the claim of an ephemeral volume', 'pods', volume({ ephemeral: {} }), ['persistentvolumeclaims a/p-v']],
  ['the Secret of a driver', 'pods', volume({ csi: { nodePublishSecretRef: { name: 's' } } }), ['secrets a/s']],
  ['the Secret of an older driver', 'pods', volume({ iscsi: { secretRef: { name: 's' } } }), ['secrets a/s']],
  ['an azure file', 'pods', volume({ azureFile: { secretName: 's' } }), ['secrets a/s']],
  [
    'claims of devices, also those made from a template and for an extended resource',
    'pods',
    pod(
      {
        resourceClaims: [
          { name: 'gpu', resourceClaimName: 'mine' },
          { name: 'nic', resourceClaimTemplateName: 't' },
        ],
      },
      {
        resourceClaimStatuses: [{ name: 'nic', resourceClaimName: 'p-nic-x7k2p' }, { name: 'none' }],
        extendedResourceClaimStatus: { resourceClaimName: 'p-extended-resources-9' },
      },
    ),
    ['mine', 'p-nic-x7k2p', 'p-extended-resources-9'].map((name) => `resourceclaims.resource.k8s.io a/${name}`),
  ],
  [
    'the attachment of a volume to the node, by the name that Kubernetes gives it',
    'persistentvolumes',
    { spec: { csi: { driver: 'disk.example.com', volumeHandle: 'vol-1' } } },
    ['volumeattachments.storage.k8s.io /csi-67beaef07640111ae4680dbb1618fdc2d7e8b400988a31892dc9e25a33572edd'],
  ],
  ['no source that needs any', 'pods', volume({ emptyDir: {}, hostPath: { path: '/x' } }), []],
  [
    'each once',
    'pods',
    pod({ imagePullSecrets: [{ name: 's' }], volumes: [{ name: 'v', secret: { secretName: 's' } }] }),
    ['secrets a/s'],
  ],
  ['nothing of a pod at its end', 'pods', pod({ serviceAccountName: 'robot' }, { phase: 'Succeeded' }), []],
  ['nothing of one that failed', 'pods', pod({ serviceAccountName: 'robot' }, { phase: 'Failed' }), []],
  ['a running one', 'pods', pod({ serviceAccountName: 'r' }, { phase: 'Running' }), ['serviceaccounts a/r']],
  ['a claim’s volume', 'persistentvolumeclaims', { spec: { volumeName: 'pv' } }, ['persistentvolumes /pv']],
  ['a claim that has none yet', 'persistentvolumeclaims', { spec: {} }, []],
  [
    'a volume’s Secrets, not its controller’s',
    'persistentvolumes',
    {
      spec: {
        claimRef: { namespace: 'a', name: 'data' },
        csi: {
          nodeStageSecretRef: { name: 's1', namespace: 'storage' },
          nodePublishSecretRef: { name: 's2' },
          controllerPublishSecretRef: { name: 's3', namespace: 'storage' },
        },
      },
    },
    ['secrets storage/s1', 'secrets a/s2'],
  ],
  ['anything else', 'services', { spec: { volumeName: 'pv' } }, []],
]

test('what an object names that a node reads before it starts a pod', () => {
  for (const [rule, resource, object, expected] of rows) assert.deepEqual(named(resource, object), expected, rule)
})

test('a pod waits for a token where one is projected into it', () => {
  const token = { projected: { sources: [{ configMap: { name: 'c' } }, { serviceAccountToken: { path: 'token' } }] } }
  const mounts = (object: object) => mountsToken(fromPlain(object))
  assert.equal(mounts(volume(token)), true)
  assert.equal(mounts(volume({ projected: { sources: [{ configMap: { name: 'c' } }] } })), false)
  assert.equal(mounts(pod({ serviceAccountName: 'robot', automountServiceAccountToken: false })), false)
  assert.equal(mounts({ ...volume(token), status: { phase: 'Succeeded' } }), false)
})

test('what is not as it should be names nothing', () => {
  for (const odd of [null, [], 'pod', { spec: null }, { spec: { volumes: {}, containers: [null, 'x'] } }, volume([])])
    assert.deepEqual(named('pods', odd as object), [])
})
