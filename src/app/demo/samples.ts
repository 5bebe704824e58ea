/** What the demo shows: a small site with a web shop, and sensors as custom resources that never stand still. */

const site = { 'topology.kubernetes.io/zone': 'site-7' }

const sensorDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'sensors.edge.example.com' },
  spec: {
    group: 'edge.example.com',
    scope: 'Namespaced',
    names: { plural: 'sensors', singular: 'sensor', kind: 'Sensor', shortNames: ['sn'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        selectableFields: [{ jsonPath: '.spec.room' }],
        additionalPrinterColumns: [
          { name: 'Room', type: 'string', jsonPath: '.spec.room' },
          { name: 'Celsius', type: 'number', jsonPath: '.status.celsius' },
          { name: 'Readings', type: 'integer', jsonPath: '.status.readings' },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['room'],
                properties: {
                  room: { type: 'string', minLength: 1 },
                  intervalSeconds: { type: 'integer', minimum: 1, default: 5 },
                },
              },
              status: {
                type: 'object',
                properties: { celsius: { type: 'number' }, readings: { type: 'integer' } },
              },
            },
          },
        },
      },
    ],
  },
}

const rooms = ['cold-store', 'bakery', 'checkout', 'loading-dock', 'office']

export const sensors = rooms.map((room, i) => ({
  apiVersion: 'edge.example.com/v1',
  kind: 'Sensor',
  metadata: { name: `sensor-${i + 1}`, namespace: 'shop' },
  spec: { room },
}))

function pod(name: string, image: string, node: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels: { app: name.split('-')[0] } },
    spec: { nodeName: node, containers: [{ name: 'main', image }], restartPolicy: 'Always' },
  }
}

const nodes = ['edge-1', 'edge-2']
const pods = [
  pod('till-0', 'registry.example.com/till:1.4', 'edge-1'),
  pod('till-1', 'registry.example.com/till:1.4', 'edge-2'),
  pod('camera-0', 'registry.example.com/camera:0.9', 'edge-1'),
]

/** What kubelets would report, once everything runs: path and status. */
export function sampleStatuses(now: string): readonly (readonly [path: string, status: object])[] {
  const isTrue = (type: string) => ({ type, status: 'True', lastTransitionTime: now })
  const ready = nodes.map((name, at) => {
    const addresses = [{ type: 'InternalIP', address: `192.0.2.${at + 1}` }]
    return [`/api/v1/nodes/${name}/status`, { addresses, conditions: [isTrue('Ready')] }] as const
  })
  const running = pods.map(({ metadata, spec }, at) => {
    const [{ name, image } = { name: '', image: '' }] = spec.containers
    const state = { running: { startedAt: now } }
    const status = {
      phase: 'Running',
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(isTrue),
      hostIP: `192.0.2.${nodes.indexOf(spec.nodeName) + 1}`,
      podIP: `198.51.100.${at + 1}`,
      podIPs: [{ ip: `198.51.100.${at + 1}` }],
      startTime: now,
      containerStatuses: [{ name, image, imageID: image, ready: true, started: true, restartCount: 0, state }],
    }
    return [`/api/v1/namespaces/shop/pods/${metadata.name}/status`, status] as const
  })
  return [...ready, ...running]
}

/** In the order in which they have to be made: path and object. */
export const sampleObjects: readonly (readonly [path: string, object: unknown])[] = [
  ['/api/v1/namespaces', { metadata: { name: 'shop', labels: site } }],
  ...nodes.map((name) => ['/api/v1/nodes', { metadata: { name, labels: site } }] as const),
  [
    '/api/v1/namespaces/shop/configmaps',
    { metadata: { name: 'prices', namespace: 'shop' }, data: { bread: '2.80', milk: '1.45' } },
  ],
  [
    '/api/v1/namespaces/shop/services',
    {
      metadata: { name: 'till', namespace: 'shop' },
      spec: {
        clusterIP: 'None',
        type: 'ClusterIP',
        selector: { app: 'till' },
        ports: [{ port: 80, protocol: 'TCP', targetPort: 8080 }],
      },
    },
  ],
  ...pods.map((one) => ['/api/v1/namespaces/shop/pods', one] as const),
  ['/apis/apiextensions.k8s.io/v1/customresourcedefinitions', sensorDefinition],
  ...sensors.map((sensor) => ['/apis/edge.example.com/v1/namespaces/shop/sensors', sensor] as const),
]

/** What the edges hold from the start: as an option names it, and where it is read. */
export const mirrored = [
  { name: 'nodes', path: '/api/v1/nodes' },
  { name: 'pods', path: '/api/v1/pods' },
  { name: 'services', path: '/api/v1/services' },
  { name: 'configmaps', path: '/api/v1/configmaps' },
  { name: 'sensors.edge.example.com', path: '/apis/edge.example.com/v1/sensors' },
] as const
