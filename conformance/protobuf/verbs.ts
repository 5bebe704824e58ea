/**
 * Every stored kind through every verb, in protobuf: created, read, replaced, listed and deleted. What is created is what the
 * real one makes of the smallest valid object, so that nothing is left to default.
 */
import { type Case, del, type Group, get, post, put } from '../corpus.ts'
import { ask, type Oracle } from '../oracle.ts'
import { samples } from '../samples.ts'
import { type Place, placesOf } from './places.ts'

const namespace = 'verbs'

type Metadata = { name?: string; labels?: Record<string, string>; [field: string]: unknown }
type Sample = { readonly metadata?: Metadata; readonly [field: string]: unknown }

/** Whose objects the real one's own controllers change a moment later. */
const controlled = new Set(['APIService', 'CustomResourceDefinition', 'FlowSchema', 'Namespace'])
/** What a smallest object leaves to the server is of the moment: addresses, and the labels by which a job finds its pods. */
const told: Readonly<Record<string, Sample>> = {
  Service: { spec: { clusterIP: 'None', ports: [{ port: 80 }] } },
  Job: {
    spec: {
      manualSelector: true,
      selector: { matchLabels: { app: 'sample' } },
      template: {
        metadata: { labels: { app: 'sample' } },
        spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'registry.example/image:1' }] },
      },
    },
  },
}

/** Of the server that stores it. */
const given = ['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'managedFields', 'selfLink']

export async function verbs(oracle: Oracle): Promise<Group> {
  const prepared = { method: 'POST', body: { metadata: { name: `${namespace}-prepared` } } }
  await ask(oracle, '/api/v1/namespaces', prepared)
  const account = { method: 'POST', body: { metadata: { name: 'default' } } }
  await ask(oracle, `/api/v1/namespaces/${namespace}-prepared/serviceaccounts`, account)
  const cases: Case[] = []
  for (const place of await placesOf(oracle)) cases.push(...(await casesOf(oracle, place)))
  return { name: namespace, cases }
}

const another = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: 'other' } }

async function casesOf(oracle: Oracle, place: Place): Promise<Case[]> {
  const { apiVersion, kind, resource } = place
  const group = apiVersion === 'v1' ? '' : (apiVersion.split('/')[0] as string)
  const sample = told[kind] ?? samples[`${group}/${resource}`]
  if (sample === undefined || controlled.has(kind)) return []
  const metadata = { name: `sample-${kind.toLowerCase()}`, ...sample.metadata }
  const dry = { method: 'POST', body: { apiVersion, kind, ...sample, metadata } }
  const { status, body } = await ask(oracle, `${place.path(`${namespace}-prepared`)}?dryRun=All`, dry)
  if (status !== 201) return []
  const object = JSON.parse(body) as Sample
  const own = { ...object, metadata: cleaned(object.metadata ?? {}, place.namespaced) }
  const labelled = { ...own, metadata: { ...own.metadata, labels: { ...own.metadata.labels, changed: 'yes' } } }
  const path = place.path(namespace)
  const one = `${path}/${metadata.name}`
  const name = `${apiVersion} ${kind}`
  return [
    post(`create ${name}`, path, own),
    post(`create ${name} again`, path, own),
    get(`read ${name}`, one, {}, { take: { rv: 'metadata.resourceVersion' } }),
    put(`replace ${name}`, one, {
      ...labelled,
      metadata: { ...labelled.metadata, resourceVersion: '<rv>' },
    }),
    put(`replace ${name} from before`, one, { ...own, metadata: { ...own.metadata, resourceVersion: '1' } }),
    get(`list ${name}`, `${path}?fieldSelector=metadata.name%3D${metadata.name}`),
    // Events of either group are stored as those of the core, and refused by that name.
    ...(group === 'events.k8s.io' ? [] : [del(`delete ${name}, another`, one, another)]),
    del(`delete ${name}`, one, { kind: 'DeleteOptions', apiVersion, gracePeriodSeconds: 0 }),
    get(`${name} afterwards`, one),
  ]
}

function cleaned(metadata: Metadata, namespaced: boolean): Metadata {
  const kept = Object.entries(metadata).filter(([name]) => !given.includes(name))
  return { ...Object.fromEntries(kept), ...(namespaced ? { namespace } : {}) }
}
