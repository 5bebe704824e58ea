import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeContinue } from './continue.ts'
import { parseGetOptions, parseListOptions } from './listoptions.ts'
import { Query } from './request.ts'
import { StatusError } from './status.ts'

const token = encodeContinue('n/p', 7, 99, 'n/')

function list(text: string) {
  const { state, limit } = parseListOptions(new Query(text), 'list', 'n/')
  return { state, limit }
}

function refusal(parse: () => unknown): StatusError {
  try {
    parse()
  } catch (error) {
    assert.ok(error instanceof StatusError)
    return error
  }
  throw assert.fail('not refused')
}

test('a list settles version, match, limit and continue by the table', () => {
  const cases: [string, unknown, number][] = [
    ['', { kind: 'recent' }, 0],
    ['resourceVersion=', { kind: 'recent' }, 0],
    ['limit=5', { kind: 'recent' }, 5],
    ['limit=-1', { kind: 'recent' }, 0],
    ['limit=%2B5', { kind: 'recent' }, 5],
    ['resourceVersion=0', { kind: 'any' }, 0],
    ['resourceVersion=0&limit=5', { kind: 'any' }, 0],
    ['resourceVersion=0&resourceVersionMatch=NotOlderThan', { kind: 'any' }, 0],
    ['resourceVersion=9', { kind: 'notOlderThan', version: 9 }, 0],
    ['resourceVersion=9&limit=5', { kind: 'exact', version: 9 }, 5],
    ['resourceVersion=9&limit=5&resourceVersionMatch=NotOlderThan', { kind: 'notOlderThan', version: 9 }, 5],
    ['resourceVersion=9&resourceVersionMatch=Exact', { kind: 'exact', version: 9 }, 0],
    ['resourceVersion=18446744073709551615', { kind: 'notOlderThan', version: Number.MAX_SAFE_INTEGER }, 0],
  ]
  for (const [text, state, limit] of cases) assert.deepEqual(list(text), { state, limit }, text)
  const continued = { kind: 'continue', token: { start: 'n/p\0', version: 7, issuedSeconds: 99 } }
  assert.deepEqual(list(`continue=${token}&limit=2`), { state: continued, limit: 2 })
  assert.deepEqual(list(`continue=${token}&limit=2&resourceVersion=0`), { state: continued, limit: 0 })
})

test('a list carries its selectors', () => {
  const options = parseListOptions(new Query('labelSelector=a%3Db&fieldSelector=metadata.name%3Dx'), 'deletecollection')
  assert.equal(options.labels.toString(), 'a=b')
  assert.equal(options.fields.toString(), 'metadata.name=x')
})

test('what the table forbids is a 422 about ListOptions', () => {
  const match = 'resourceVersionMatch: Forbidden: '
  const unless = `${match}resourceVersionMatch is forbidden unless resourceVersion is provided`
  const values = 'resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""'
  const cases: [string, string][] = [
    ['resourceVersionMatch=Exact', unless],
    ['resourceVersionMatch=NotOlderThan', unless],
    ['resourceVersionMatch=Foo', `[${unless}, ${values}]`],
    ['resourceVersionMatch=Foo&resourceVersion=5', values],
    [
      'resourceVersionMatch=Exact&resourceVersion=0',
      `${match}resourceVersionMatch "exact" is forbidden for resourceVersion "0"`,
    ],
    [
      `resourceVersionMatch=Exact&resourceVersion=1&continue=x`,
      `${match}resourceVersionMatch is forbidden when continue is provided`,
    ],
    ['sendInitialEvents=', 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'],
  ]
  for (const [text, end] of cases) {
    const { status } = refusal(() => list(text))
    assert.equal(status.message, `ListOptions.meta.k8s.io "" is invalid: ${end}`)
    assert.equal(status.code, 422)
    assert.equal(status.details?.group, 'meta.k8s.io')
    assert.equal(status.details?.kind, 'ListOptions')
  }
})

test('what cannot be read is a 400, numbers first, then selectors, then the table, then versions', () => {
  const version = 'invalid resource version: resourceVersion: Invalid value: '
  const cases: [string, string][] = [
    ['limit=x', 'strconv.ParseInt: parsing "x": invalid syntax'],
    ['limit=', 'strconv.ParseInt: parsing "": invalid syntax'],
    ['limit=99999999999999999999', 'strconv.ParseInt: parsing "99999999999999999999": value out of range'],
    ['limit=a&timeoutSeconds=1.5', 'strconv.ParseInt: parsing "1.5": invalid syntax'],
    ['limit=x&labelSelector==', 'strconv.ParseInt: parsing "x": invalid syntax'],
    ['labelSelector==&resourceVersionMatch=Exact', "found '=', expected: !, identifier, or 'end of string'"],
    ['resourceVersion=abc', `${version}"abc": strconv.ParseUint: parsing "abc": invalid syntax`],
    ['resourceVersion=-1', `${version}"-1": strconv.ParseUint: parsing "-1": invalid syntax`],
    [`continue=${token}&resourceVersion=5`, 'specifying resource version is not allowed when using continue'],
  ]
  for (const [text, message] of cases) {
    const { status } = refusal(() => list(text))
    assert.equal(status.message, message, text)
    assert.equal(status.code, 400)
  }
  assert.equal(refusal(() => list('resourceVersion=abc&resourceVersionMatch=Foo')).code, 422)
  assert.equal(refusal(() => list('continue=x&resourceVersion=abc')).code, 400)
})

test('a watch settles its start, its initial events and its bookmarks', () => {
  const watch = (text: string) => {
    const { labels: _labels, fields: _fields, ...rest } = parseListOptions(new Query(text), 'watch')
    return rest
  }
  const plain = { bookmarks: false, closingBookmark: false }
  const recent = { start: { kind: 'recent' } }
  const any = { start: { kind: 'any' } }
  const nine = { start: { kind: 'after', version: 9 } }
  const both = { bookmarks: true, closingBookmark: true }
  const wanted = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
  assert.deepEqual(watch('watch=1'), { ...recent, initialEvents: true, ...plain })
  assert.deepEqual(watch('watch=1&resourceVersion=0'), { ...any, initialEvents: true, ...plain })
  assert.deepEqual(watch('watch=1&resourceVersion=9'), { ...nine, initialEvents: false, ...plain })
  assert.deepEqual(watch('watch=1&resourceVersion=9&allowWatchBookmarks=true&timeoutSeconds=300'), {
    ...nine,
    initialEvents: false,
    bookmarks: true,
    closingBookmark: false,
    timeoutSeconds: 300,
  })
  assert.deepEqual(watch('watch=1&allowWatchBookmarks=1'), { ...recent, initialEvents: true, ...both })
  assert.deepEqual(watch('watch=1&allowWatchBookmarks=1&resourceVersion=0'), { ...any, initialEvents: true, ...both })
  assert.deepEqual(watch(`watch=1&${wanted}`), { ...recent, initialEvents: true, ...plain })
  assert.deepEqual(watch(`watch=1&${wanted}&allowWatchBookmarks=1&resourceVersion=9`), {
    ...nine,
    initialEvents: true,
    ...both,
  })
  assert.deepEqual(watch('watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan'), {
    ...recent,
    initialEvents: false,
    ...plain,
  })
  // The old path form has no watch parameter: it is never a WatchList.
  assert.deepEqual(watch('allowWatchBookmarks=1'), {
    ...recent,
    initialEvents: true,
    bookmarks: true,
    closingBookmark: false,
  })
})

test('a watch is refused as kube-apiserver refuses it', () => {
  const match = 'resourceVersionMatch: Forbidden: '
  const cases: [string, number, string][] = [
    [
      'resourceVersion=5&resourceVersionMatch=NotOlderThan',
      422,
      `${match}resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`,
    ],
    ['sendInitialEvents=true', 422, `${match}sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`],
    [
      'sendInitialEvents=true&resourceVersionMatch=Exact',
      422,
      `[${match}sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]`,
    ],
    ['continue=abc', 422, `${match}resourceVersionMatch is forbidden when continue is provided`],
    ['timeoutSeconds=x', 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
    [
      'resourceVersion=abc',
      500,
      'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    ],
  ]
  for (const [text, code, end] of cases) {
    const error = refusal(() => parseListOptions(new Query(`watch=1&${text}`), 'watch'))
    assert.equal(error.code, code, text)
    assert.equal(error.message, code === 422 ? `ListOptions.meta.k8s.io "" is invalid: ${end}` : end)
  }
})

test('a get knows three states', () => {
  assert.deepEqual(parseGetOptions(new Query('')), { kind: 'recent' })
  assert.deepEqual(parseGetOptions(new Query('resourceVersion=0')), { kind: 'any' })
  assert.deepEqual(parseGetOptions(new Query('resourceVersion=9')), { kind: 'notOlderThan', version: 9 })
  assert.equal(refusal(() => parseGetOptions(new Query('resourceVersion=x'))).code, 500)
})
