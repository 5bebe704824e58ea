/** Label and field selectors: every operator, the fields of each resource, and what is refused in which words. */
import { type Case, type Group, get, post } from '../corpus.ts'
import { apps, configMap, core, deployment, node, pod, secret, service } from './fixtures.ts'

const maps = core('selectors', 'configmaps')
const pods = core('selectors', 'pods')
const encoded = encodeURIComponent

const byLabel = (selector: string): Case => get(`label ${selector}`, `${maps}?labelSelector=${encoded(selector)}`)

const byField = (path: string, selector: string): Case =>
  get(
    `field ${path.startsWith('/apis/events') ? 'new ' : ''}${path.split('/').at(-1)} ${selector}`,
    `${path}?fieldSelector=${encoded(selector)}`,
  )

const labels = [
  'app=web',
  'app==web',
  'app!=web',
  'app',
  '!app',
  'app in (web, db)',
  'app in (web,)',
  'app in ()',
  'app notin (web,db)',
  'tier>1',
  'tier<3',
  'tier gt 1',
  'tier lt 3',
  'app=web,tier=2',
  'app,tier!=2',
  ' app = web , tier = 2 ',
  'app=',
  'app!=',
  'example.com/role=main',
  'example.com/role in (main)',
  '',
  ',',
  'app=web,',
  '=web',
  'app==',
  'app===web',
  'app in web',
  'app in (web',
  'app web',
  '!app=web',
  'app=we b',
  'app=-web',
  'bad/key/name=x',
  'Example.COM/role=x',
  '-app=x',
  'tier>abc',
  'tier>1,tier<4,app in (db)',
  'app=x'.concat('y'.repeat(64)),
  'ä=b',
]

export const selectors: Group = {
  name: 'selectors',
  cases: [
    post('make web', maps, configMap('web', { k: 'v' }, { labels: { app: 'web', tier: '2' } })),
    post(
      'make db',
      maps,
      configMap('db', { k: 'v' }, { labels: { app: 'db', tier: '3', 'example.com/role': 'main' } }),
    ),
    post('make bare', maps, configMap('bare', { k: 'v' })),
    post('make empty', maps, configMap('empty', { k: 'v' }, { labels: { app: '' } })),
    post('make pod placed', pods, pod('placed', { app: 'web' }, { nodeName: 'selectors-node' })),
    post('make pod pending', pods, pod('pending')),
    post(
      'make pod on the host network',
      pods,
      pod('host', { app: 'web' }, { hostNetwork: true, restartPolicy: 'Never' }),
    ),
    post('make node', '/api/v1/nodes', node('selectors-node', { selectors: 'yes' })),
    post('make secret', core('selectors', 'secrets'), secret('s', { k: 'dg==' })),
    post('make service', core('selectors', 'services'), service('web')),
    post('make deployment', apps('selectors', 'deployments'), deployment('d')),
    ...labels.map(byLabel),
    get('two label selectors', `${maps}?labelSelector=app&labelSelector=tier`),
    ...['metadata.name=web', 'metadata.name==web', 'metadata.name!=web', 'metadata.namespace=selectors'].map((one) =>
      byField(maps, one),
    ),
    ...[
      'metadata.namespace=other',
      'metadata.name=',
      'metadata.name!=',
      '',
      ',',
      'metadata.name=web,metadata.name=db',
    ].map((one) => byField(maps, one)),
    ...[
      'metadata.uid=1',
      'data.k=v',
      'metadata.labels.app=web',
      'nonsense',
      'metadata.name>a',
      '=x',
      'metadata.name=a=b',
    ].map((one) => byField(maps, one)),
    ...['metadata.name=a\\,b', 'metadata.name=a\\=b', 'metadata.name=a\\', 'metadata.name=a\\x'].map((one) =>
      byField(maps, one),
    ),
    ...['spec.nodeName=selectors-node', 'spec.nodeName=', 'spec.nodeName!=selectors-node', 'status.phase=Pending'].map(
      (one) => byField(pods, one),
    ),
    ...['status.phase!=Pending', 'spec.restartPolicy=Never', 'spec.hostNetwork=true', 'spec.hostNetwork=false'].map(
      (one) => byField(pods, one),
    ),
    ...[
      'spec.schedulerName=default-scheduler',
      'spec.serviceAccountName=default',
      'status.podIP=',
      'status.nominatedNodeName=',
    ].map((one) => byField(pods, one)),
    ...[
      'spec.nodeName=selectors-node,status.phase=Pending',
      'spec.containers=x',
      'status.phase=Pending,metadata.name=host',
    ].map((one) => byField(pods, one)),
    byField('/api/v1/nodes', 'spec.unschedulable=false'),
    byField('/api/v1/nodes', 'spec.unschedulable=true'),
    byField('/api/v1/nodes', 'metadata.name=selectors-node'),
    byField('/api/v1/nodes', 'spec.podCIDR=x'),
    byField('/api/v1/namespaces', 'status.phase=Terminating'),
    byField('/api/v1/namespaces', 'metadata.name=selectors'),
    byField('/api/v1/namespaces', 'metadata.namespace=x'),
    byField(core('selectors', 'secrets'), 'type=Opaque'),
    byField(core('selectors', 'secrets'), 'type!=Opaque'),
    byField(core('selectors', 'services'), 'spec.clusterIP=None'),
    byField(core('selectors', 'services'), 'spec.clusterIP!=None'),
    byField(core('selectors', 'services'), 'spec.type=ClusterIP'),
    byField(core('selectors', 'services'), 'spec.ports=x'),
    byField(apps('selectors', 'deployments'), 'metadata.name=d'),
    byField(apps('selectors', 'deployments'), 'spec.replicas=1'),
    byField(apps('selectors', 'replicasets'), 'status.replicas=0'),
    byField(core('selectors', 'replicationcontrollers'), 'status.replicas=0'),
    byField('/apis/batch/v1/namespaces/selectors/jobs', 'status.successful=0'),
    byField(core('selectors', 'events'), 'involvedObject.kind=Pod'),
    byField(core('selectors', 'events'), 'reason=x,type=Normal'),
    byField('/apis/events.k8s.io/v1/namespaces/selectors/events', 'regarding.kind=Pod'),
    byField('/apis/events.k8s.io/v1/namespaces/selectors/events', 'involvedObject.kind=Pod'),
    byField('/apis/certificates.k8s.io/v1/certificatesigningrequests', 'spec.signerName=x'),
    get('label and field selector', `${maps}?labelSelector=app&fieldSelector=metadata.name%3Ddb`),
    get('field selector across namespaces', '/api/v1/pods?fieldSelector=spec.nodeName%3Dselectors-node'),
    get('namespace by field selector across all', '/api/v1/configmaps?fieldSelector=metadata.namespace%3Dselectors'),
    get('not a namespace by field selector', '/api/v1/pods?fieldSelector=metadata.namespace!%3Dselectors'),
  ],
}
