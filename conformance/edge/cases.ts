/**
 * The reads of the corpus as an edge is asked them: what has to be written for them goes to the API server first, once, and
 * stays as it is, so that the same question has the same answer online, offline and after a restart.
 */
import { discovery } from '../corpus/discovery.ts'
import { errors } from '../corpus/errors.ts'
import { negotiation } from '../corpus/negotiation.ts'
import { odd } from '../corpus/odd.ts'
import { paging } from '../corpus/paging.ts'
import { reads } from '../corpus/reads.ts'
import { selectors } from '../corpus/selectors.ts'
import { subresources } from '../corpus/subresources.ts'
import { tables } from '../corpus/tables.ts'
import { watches } from '../corpus/watches.ts'
import { type Case, type Group, get, getAs, watch } from '../corpus.ts'

export type Asked = {
  readonly name: string
  readonly namespaces: readonly string[]
  /** Written to the API server before anything is read, or waited for there. */
  readonly writes: readonly Case[]
  /** Watches that are shown changes while they are open: only online. */
  readonly live: readonly Case[]
  readonly reads: readonly Case[]
}

/** A version that is taken before the live watches, so that there is history to replay; see `startOf`. */
const presetNames: ReadonlySet<string> = new Set(['watches/list to start from'])

function asked(group: Group, writes = /^make /): Asked {
  const { name, namespaces = [name], cases } = group
  const isRead = ({ method }: Case) => method === 'GET' || method === 'HEAD'
  const isLive = ({ watch }: Case) => watch !== undefined && watch.during.length > 0
  return {
    name,
    namespaces,
    writes: cases.filter((one) => (isRead(one) ? one.until !== undefined : writes.test(one.name))),
    live: cases.filter(isLive),
    reads: cases.filter(
      (one) => isRead(one) && !isLive(one) && one.until === undefined && !presetNames.has(`${name}/${one.name}`),
    ),
  }
}

const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const initial = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'

/** Every kind that the tables have one of, in every form. */
const kinds: Group = {
  name: 'kinds',
  namespaces: [],
  cases: tables.cases
    .filter(({ method, name }) => method === 'POST' && name.startsWith('make '))
    .flatMap(({ path, body }): Case[] => {
      const object = `${path}/${(body as { metadata: { name: string } }).metadata.name}`
      return [
        get(`${path}: list`, `${path}?resourceVersion=0`),
        get(`${path}: one`, object),
        getAs(`${path}: as yaml`, path, 'application/yaml'),
        getAs(`${path}: one as yaml`, object, 'application/yaml'),
        getAs(`${path}: one as PartialObjectMetadata`, object, partial),
        watch(`${path}: watched`, `${path}?watch=true&resourceVersion=0&timeoutSeconds=1`, []),
        watch(`${path}: initial events as PartialObjectMetadata`, `${path}?${initial}&timeoutSeconds=1`, [], {
          headers: { accept: partial },
        }),
      ]
    }),
}

export const startOf = { group: 'watches', variable: 'rv', path: '/api/v1/namespaces/watches/configmaps' } as const

export const edgeGroups: readonly Asked[] = [
  asked(reads, /^make |^a large/),
  asked(paging, /^make |between pages/),
  asked(selectors),
  asked(watches),
  asked(negotiation),
  asked(tables, /^make |progresses|runs|is ready/),
  asked(kinds),
  asked(errors),
  asked(subresources),
  asked(odd, /./),
  asked(discovery, /^$/),
]
