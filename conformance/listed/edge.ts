/**
 * Where `ake edge` differs on purpose from the API server behind it, by the reads of the corpus that show it. A case's name begins
 * with the state of the line: `live`, `online`, `offline`, `restarted` or `blackhole`. A 503 in place of an answer is the field
 * `unanswered`, in place of a refusal `unverified`.
 */
import type { Difference } from './listed.ts'

/** The same case in each state of the line without an API server. */
const away = (...cases: string[]) =>
  cases.flatMap((one) => ['offline', 'restarted', 'blackhole'].map((state) => `${state}/${one}`))

export const edge: readonly Difference[] = [
  {
    id: 'table-prose',
    real: 'explains every column',
    ours: "columns without descriptions, but for CRDs' own",
    why: "the facts about built-ins are kept without Kubernetes' prose",
    where: {
      '*columnDefinitions*.description': ['*/*'],
      text: ['*/negotiation/* as application/yaml;as=Table*'],
    },
  },
  {
    id: 'go-quirks',
    real: 'null for no rows, a lost annotation',
    ours: 'an empty list, the annotation',
    why: 'accidents of single kinds that no client depends on',
    where: {
      'body.rows': ['*/tables/table */limitranges', '*/tables/table */roles'],
      'body.rows*': ['*/tables/table */daemonsets'],
      'body*.annotations': ['*/kinds/*daemonsets*'],
    },
  },
  {
    id: 'broken-query',
    real: 'drops a parameter that it cannot decode; a path gets a bare 400',
    ours: '400 with a Status',
    why: 'a broken selector must not become "everything"',
    where: {
      '*': ['*/errors/path *%zz'],
    },
  },
  {
    id: 'exact-past',
    real: 'goes back as far as etcd does',
    ours: "410 for what was before the copy's history",
    why: 'history begins with the first sync; clients list anew, as after a compaction',
    where: {
      '*': ['*/paging/list resourceVersion=1&limit=2', '*/paging/list resourceVersion=007*', '*/watches/version 1'],
    },
  },
  {
    id: 'own-health',
    real: 'one line per check of its own parts',
    ours: 'one line per check of the edge',
    why: 'health is of this process',
    where: {
      text: ['*/discovery/document /*verbose*'],
    },
  },
  {
    id: 'openapi-moment',
    real: 'the time of the answer',
    ours: 'the time at which it was mirrored',
    why: 'the document is kept with its headers',
    where: {
      'header.last-modified': ['*/discovery/document /openapi/v3*'],
    },
  },
  {
    id: 'not-mirrored',
    real: 'answers',
    ours: '503',
    why: 'events and subresources other than `status` are never mirrored',
    where: {
      unanswered: [
        ...away(
          'selectors/field *events *',
          'tables/table */events',
          'subresources/scale *',
          'subresources/resize',
          'odd/*: scale',
        ),
      ],
    },
  },
  {
    id: 'own-paths',
    real: 'lists its paths, answers HEAD',
    ours: '503',
    why: 'neither is mirrored',
    where: {
      unanswered: [...away('discovery/document /', 'discovery/openapi v2 by HEAD')],
    },
  },
  {
    id: 'absence-unverified',
    real: '404 or 405 for what does not exist',
    ours: '503 where discovery does not rule it out',
    why: 'what was never mirrored is not called absent',
    where: {
      unverified: [
        ...away(
          'errors/path *',
          '*unknown*',
          'discovery/document /*',
          'discovery/path *',
          'subresources/*',
          'odd/the guessed plural',
          'reads/double slash',
          'reads/name with an encoded slash',
        ),
      ],
    },
  },
  {
    id: 'refused-forms',
    real: '406 for a form, 405 for HEAD, 400 for a field of an event',
    ours: '503',
    why: "the refusal is the API server's to make",
    where: {
      unverified: [
        ...away(
          'discovery/version as protobuf',
          'discovery/aggregated *',
          'discovery/openapi *',
          'negotiation/* list as *',
          '*HEAD*',
          'selectors/field new events *',
        ),
      ],
    },
  },
]
