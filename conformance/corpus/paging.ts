/** The table of resourceVersion, resourceVersionMatch, limit and continue, with its refusals. */
import { type Case, del, type Group, get, getAs, post, put } from '../corpus.ts'
import { configMap, core } from './fixtures.ts'

const maps = core('paging', 'configmaps')
const names = ['a', 'aa', 'b', 'c-1', 'c.1', 'd', 'e']

/** Every combination that the API's concepts page has a row or a refusal for. */
const combinations: Case[] = ['', 'NotOlderThan', 'Exact', 'Sideways'].flatMap((match) =>
  [undefined, '', '0', '<rv>', '1', '99999999', 'abc', '-1', '007'].flatMap((version) =>
    [undefined, '2'].flatMap((limit) => {
      const query = [
        ...(version === undefined ? [] : [`resourceVersion=${version}`]),
        ...(match === '' ? [] : [`resourceVersionMatch=${match}`]),
        ...(limit === undefined ? [] : [`limit=${limit}`]),
      ].join('&')
      // A version of the past that no longer is: whether it still is depends on the age of the store.
      if (version === '1' && match === 'Exact') return []
      // Seconds of waiting each; one of a kind is enough.
      if (version === '99999999' && limit !== undefined) return []
      return query === '' ? [] : [get(`list ${query}`, `${maps}?${query}`)]
    }),
  ),
)

export const paging: Group = {
  name: 'paging',
  cases: [
    ...names.map((name) =>
      post(`make ${name}`, maps, configMap(name, { k: name }, { labels: { even: String(name.length % 2 === 0) } })),
    ),
    get('all', maps, {}, { take: { rv: 'metadata.resourceVersion' } }),
    ...combinations,
    get('first page', `${maps}?limit=3`, {}, { take: { next: 'metadata.continue' } }),
    put('a change between pages', `${maps}/d`, configMap('d', { k: 'changed' })),
    del('a deletion between pages', `${maps}/c-1`),
    post('a creation between pages', maps, configMap('bb')),
    get(
      'second page shows the old state',
      `${maps}?limit=3&continue=<next>`,
      {},
      { take: { more: 'metadata.continue' } },
    ),
    get('last page', `${maps}?limit=3&continue=<more>`),
    get('the rest without limit', `${maps}?continue=<next>`),
    get('continue with a version', `${maps}?limit=3&continue=<next>&resourceVersion=<rv>`),
    get('continue with version 0', `${maps}?limit=3&continue=<next>&resourceVersion=0`),
    get('continue with match', `${maps}?limit=3&continue=<next>&resourceVersionMatch=Exact`),
    get(
      'continue with version and match',
      `${maps}?limit=3&continue=<next>&resourceVersionMatch=Exact&resourceVersion=<rv>`,
    ),
    get('continue that is not base64', `${maps}?limit=3&continue=%25%25%25`),
    get('continue that is no JSON', `${maps}?limit=3&continue=bm9uc2Vuc2U`),
    get(
      'continue of another version',
      `${maps}?limit=3&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjIiLCJydiI6MSwic3RhcnQiOiJhIn0`,
    ),
    get('continue without start', `${maps}?limit=3&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0`),
    get('continue without version', `${maps}?limit=3&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJzdGFydCI6ImEifQ`),
    get(
      'continue that climbs out',
      `${maps}?limit=3&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9hIn0`,
    ),
    get(
      'continue with version -1',
      `${maps}?limit=3&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYlx1MDAwMCJ9`,
    ),
    get('limit 0', `${maps}?limit=0`),
    get('limit 1', `${maps}?limit=1`),
    get('limit exactly all', `${maps}?limit=7`),
    get('limit above all', `${maps}?limit=1000`),
    get('limit negative', `${maps}?limit=-1`),
    get('limit no number', `${maps}?limit=many`),
    get('limit too large a number', `${maps}?limit=99999999999999999999`),
    get('limit empty', `${maps}?limit=`),
    get(
      'limit with a label selector',
      `${maps}?limit=1&labelSelector=even%3Dfalse`,
      {},
      { take: { odd: 'metadata.continue' } },
    ),
    get('next with a label selector', `${maps}?limit=1&labelSelector=even%3Dfalse&continue=<odd>`),
    get('limit with a field selector', `${maps}?limit=2&fieldSelector=metadata.name!%3Da`),
    getAs('limit as Table', `${maps}?limit=2`, 'application/json;as=Table;v=v1;g=meta.k8s.io'),
    getAs(
      'limit as PartialObjectMetadataList',
      `${maps}?limit=2`,
      'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
    ),
    get('across namespaces by label', '/api/v1/configmaps?limit=2&labelSelector=even'),
    get('resourceVersion twice', `${maps}?resourceVersion=0&resourceVersion=abc`),
    get('sendInitialEvents on a list', `${maps}?sendInitialEvents=true`),
    get('sendInitialEvents on a list with match', `${maps}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan`),
    get('allowWatchBookmarks on a list', `${maps}?allowWatchBookmarks=true`),
    get('timeoutSeconds on a list', `${maps}?timeoutSeconds=5`),
    get('timeoutSeconds no number', `${maps}?timeoutSeconds=soon`),
    get('watch=false', `${maps}?watch=false&limit=1`),
    get('watch=0', `${maps}?watch=0&limit=1`),
  ],
}
