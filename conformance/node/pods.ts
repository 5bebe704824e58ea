/** The two pods: one that needs its token, a ConfigMap and a Secret before it becomes ready, and one that needs nothing. */
import { image } from './image.ts'

export const namespace = 'shop'
/** A line that the first pod writes when it has found everything. */
export const logged = 'open for business'

const account = 'till'
const tokens = '/var/run/secrets/kubernetes.io/serviceaccount'
/** Serves `/ready` only after everything that was mounted has been found to be right. */
const shop = [
  `grep -q . ${tokens}/token && grep -q CERTIFICATE ${tokens}/ca.crt || exit 3`,
  'test "$(cat /config/greeting)" = hello || exit 4',
  'test "$(cat /secret/word)" = sesame || exit 5',
  `echo ${logged}`,
  'mkdir -p /tmp/www && echo yes >/tmp/www/ready && exec httpd -f -p 8080 -h /tmp/www',
].join('\n')

/** In the order in which they have to be created. */
export const needed = (): readonly object[] => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'greetings', namespace }, data: { greeting: 'hello' } },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'words', namespace }, stringData: { word: 'sesame' } },
]

/** `more` is for the spec of both. */
export const pods = (node: string, more: object = {}): readonly object[] => [
  pod(node, 'full', {
    ...more,
    serviceAccountName: account,
    containers: [
      {
        name: 'main',
        image,
        imagePullPolicy: 'Never',
        command: ['sh', '-c', shop],
        readinessProbe: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 1 },
        volumeMounts: [
          { name: 'config', mountPath: '/config' },
          { name: 'secret', mountPath: '/secret' },
        ],
      },
    ],
    volumes: [
      { name: 'config', configMap: { name: 'greetings' } },
      { name: 'secret', secret: { secretName: 'words' } },
    ],
  }),
  pod(node, 'plain', {
    ...more,
    serviceAccountName: account,
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image, imagePullPolicy: 'Never', command: ['sleep', '100000'] }],
  }),
]

/** Bound to the node at once: no scheduler runs. */
function pod(node: string, name: string, spec: object): object {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: { nodeName: node, ...spec } }
}

/** One more that needs nothing. */
export function podNamed(name: string, node: string): object {
  const containers = [{ name: 'main', image, imagePullPolicy: 'Never', command: ['sleep', '100000'] }]
  return pod(node, name, { automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, containers })
}
