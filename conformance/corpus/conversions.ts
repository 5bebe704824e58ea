/** Objects that are served in two groups or versions: events and autoscalers read and written through both. */
import { type Group, get, getAs, patch, post, put, watch } from '../corpus.ts'
import { autoscaler, core } from './fixtures.ts'

const old = core('conversions', 'events')
const now = '/apis/events.k8s.io/v1/namespaces/conversions/events'
const one = '/apis/autoscaling/v1/namespaces/conversions/horizontalpodautoscalers'
const two = '/apis/autoscaling/v2/namespaces/conversions/horizontalpodautoscalers'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'

const coreEvent = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'old' },
  involvedObject: { kind: 'Pod', namespace: 'conversions', name: 'p', apiVersion: 'v1' },
  reason: 'Started',
  message: 'it began',
  type: 'Normal',
  count: 3,
  firstTimestamp: '2001-02-03T04:05:06Z',
  lastTimestamp: '2001-02-03T05:05:06Z',
  source: { component: 'kubelet', host: 'n' },
}

const newEvent = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'new' },
  regarding: { kind: 'Pod', namespace: 'conversions', name: 'p', apiVersion: 'v1' },
  reason: 'Scheduled',
  note: 'it has a place',
  type: 'Normal',
  action: 'Binding',
  eventTime: '2001-02-03T04:05:06.000007Z',
  reportingController: 'scheduler',
  reportingInstance: 'scheduler-1',
}

const first = {
  apiVersion: 'autoscaling/v1',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'first' },
  spec: {
    minReplicas: 1,
    maxReplicas: 4,
    targetCPUUtilizationPercentage: 70,
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
  },
}

const rich = {
  ...autoscaler('rich'),
  spec: {
    ...autoscaler('rich').spec,
    metrics: [
      { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } } },
      { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '100Mi' } } },
      { type: 'Pods', pods: { metric: { name: 'requests' }, target: { type: 'AverageValue', averageValue: '10' } } },
    ],
    behavior: {
      scaleDown: {
        stabilizationWindowSeconds: 60,
        selectPolicy: 'Max',
        policies: [{ type: 'Pods', value: 1, periodSeconds: 30 }],
      },
      scaleUp: {
        stabilizationWindowSeconds: 0,
        selectPolicy: 'Max',
        policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
      },
    },
  },
}

export const conversions: Group = {
  name: 'conversions',
  cases: [
    post('old event', old, coreEvent),
    post('new event', now, newEvent),
    get('old event as new', `${now}/old`),
    get('new event as old', `${old}/new`),
    get('events, old', old),
    get('events, new', now),
    getAs('events as Table, old', old, table),
    getAs('events as Table, new', now, table),
    patch('merge', 'new event is part of a series', `${now}/new`, {
      series: { count: 2, lastObservedTime: '2001-02-03T04:05:06.000008Z' },
    }),
    patch('merge', 'new event patched as old', `${old}/new`, { message: 'moved', count: 2 }),
    get('patched as old', `${old}/old`),
    get('by involvedObject.name', `${old}?fieldSelector=involvedObject.name%3Dp,reason%3DScheduled`),
    get('by regarding.name', `${now}?fieldSelector=regarding.name%3Dp,reason%3DScheduled`),
    get('by reportingController', `${now}?fieldSelector=reportingController%3Dscheduler`),
    get('by source', `${old}?fieldSelector=source%3Dkubelet`),
    watch('watch events, new', `${now}?watch=true&timeoutSeconds=1`, []),
    watch('watch events, old', `${old}?watch=true&timeoutSeconds=1`, []),
    post('autoscaler v1', one, first),
    post('autoscaler v2', two, autoscaler('second')),
    post('autoscaler with everything', two, rich),
    get('v1 as v2', `${two}/first`),
    get('v2 as v1', `${one}/second`),
    get('everything as v1', `${one}/rich`),
    get('all as v1', one),
    get('all as v2', two),
    getAs('all as Table of v1', one, table),
    getAs('all as Table of v2', two, table),
    put('v2 replaced as v1', `${one}/second`, { ...first, metadata: { name: 'second' } }),
    get('second as v2', `${two}/second`),
    patch('merge', 'everything patched as v1', `${one}/rich`, { spec: { maxReplicas: 9 } }),
    get('everything as v2 afterwards', `${two}/rich`),
    patch('merge', 'status through v1', `${one}/first/status`, {
      status: { currentReplicas: 2, desiredReplicas: 3, currentCPUUtilizationPercentage: 50 },
    }),
    get('status through v2', `${two}/first`),
    post('v2 body at v1', one, autoscaler('wrong')),
    post('v1 body at v2', two, { ...first, metadata: { name: 'wrong' } }),
    watch('autoscalers as v1', `${one}?watch=true&timeoutSeconds=1`, []),
    post('event for another namespace', old, {
      ...coreEvent,
      metadata: { name: 'bad' },
      involvedObject: { kind: 'Pod', namespace: 'other', name: 'p' },
    }),
  ],
}
