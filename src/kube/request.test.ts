import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ApiRequest, parseRequest, Query, truthy } from './request.ts'

/** verb group/version namespace resource/name/subresource, with `-` for what is empty. */
function summary(r: ApiRequest): string {
  const dash = (text: string) => text || '-'
  const own = [r.resource, r.name, r.subresource].map(dash).join('/')
  return `${dash(r.verb)} ${dash(r.group)}/${dash(r.version)} ${dash(r.namespace)} ${own}`
}

test('parseRequest() reads resource paths as RequestInfo does', () => {
  const cases: [string, string, string][] = [
    ['GET', '/api/v1/pods', 'list -/v1 - pods/-/-'],
    ['GET', '/api/v1/pods/', 'list -/v1 - pods/-/-'],
    ['HEAD', '/api/v1/pods', 'list -/v1 - pods/-/-'],
    ['GET', '/api/v1/namespaces', 'list -/v1 - namespaces/-/-'],
    ['GET', '/api/v1/namespaces/x', 'get -/v1 x namespaces/x/-'],
    ['GET', '/api/v1/namespaces/x/status', 'get -/v1 x namespaces/x/status'],
    ['PUT', '/api/v1/namespaces/x/finalize', 'update -/v1 x namespaces/x/finalize'],
    ['GET', '/api/v1/namespaces/x/pods', 'list -/v1 x pods/-/-'],
    ['GET', '/api/v1/namespaces//pods', 'list -/v1 - pods/-/-'],
    ['GET', '/api/v1/namespaces/x/pods/p', 'get -/v1 x pods/p/-'],
    ['PATCH', '/api/v1/namespaces/x/pods/p/status', 'patch -/v1 x pods/p/status'],
    ['POST', '/api/v1/namespaces/x/pods', 'create -/v1 x pods/-/-'],
    ['DELETE', '/api/v1/namespaces/x/pods/p', 'delete -/v1 x pods/p/-'],
    ['DELETE', '/api/v1/namespaces/x/pods', 'deletecollection -/v1 x pods/-/-'],
    ['DELETE', '/api/v1/namespaces/x', 'delete -/v1 x namespaces/x/-'],
    ['OPTIONS', '/api/v1/pods', '- -/v1 - pods/-/-'],
    ['GET', '/apis/apps/v1/deployments', 'list apps/v1 - deployments/-/-'],
    ['GET', '/apis/apps/v1/namespaces/x/deployments/d/scale', 'get apps/v1 x deployments/d/scale'],
    ['GET', '/api/v1/watch/pods', 'watch -/v1 - pods/-/-'],
    ['GET', '/api/v1/watch/namespaces/x/pods/p', 'watch -/v1 x pods/p/-'],
    ['GET', '/apis/apps/v1/watch/namespaces/x/deployments', 'watch apps/v1 x deployments/-/-'],
    ['GET', '/api/v1/watch/namespaces/x', 'watch -/v1 x namespaces/x/-'],
    ['GET', '/api/v1/pods?watch', 'watch -/v1 - pods/-/-'],
    ['GET', '/api/v1/pods?watch=1', 'watch -/v1 - pods/-/-'],
    ['GET', '/api/v1/pods?limit=5&watch=FALSE', 'list -/v1 - pods/-/-'],
    ['GET', '/api/v1/pods?watch=0&watch=1', 'list -/v1 - pods/-/-'],
    ['GET', '/api/v1/namespaces/x/pods/p?watch=1', 'get -/v1 x pods/p/-'],
    ['GET', '/api/v1/namespaces/kube%2Dsystem/pods', 'list -/v1 kube-system pods/-/-'],
    ['GET', '/api/v1/namespaces/x/pods/a%2Fb', 'get -/v1 x pods/a/b'],
    ['GET', '/api/v1//pods', 'get -/v1 - -/pods/-'],
    ['GET', 'http://host:1/api/v1/pods?watch=1', 'watch -/v1 - pods/-/-'],
  ]
  for (const [method, url, expected] of cases) {
    const request = parseRequest(method, url)
    assert.equal(summary(request), expected, `${method} ${url}`)
    assert.equal(request.isResource, true)
  }
})

test('parseRequest() leaves other paths alone', () => {
  for (const path of [
    '/',
    '/api',
    '/api/v1',
    '/apis',
    '/apis/apps',
    '/apis/apps/v1',
    '/healthz',
    '/api/v1/watch',
    '//api/v1/pods',
  ]) {
    const request = parseRequest('GET', `${path}?a=b`)
    assert.equal(request.isResource, false, path)
    assert.equal(request.verb, 'get')
    assert.equal(request.path, path)
    assert.equal(request.query.get('a'), 'b')
  }
})

test('parseRequest() gives what follows the subresource, and marks legacy watches', () => {
  const proxied = parseRequest('GET', '/api/v1/namespaces/x/services/s/proxy/a/b')
  assert.deepEqual(proxied.parts, ['services', 's', 'proxy', 'a', 'b'])
  assert.equal(proxied.legacyWatch, false)
  assert.equal(parseRequest('GET', '/api/v1/watch/pods').legacyWatch, true)
})

test('parseRequest() finds the name a field selector narrows to', () => {
  const name = (query: string, path = '/api/v1/pods') => parseRequest('GET', `${path}?${query}`).selectedName
  assert.equal(name('fieldSelector=metadata.name%3Dx'), 'x')
  assert.equal(name('watch=1&fieldSelector=spec.nodeName=n,metadata.name==x'), 'x')
  assert.equal(name('fieldSelector=metadata.name!=x'), '')
  assert.equal(name('fieldSelector=metadata.name=a%2Fb'), '')
  assert.equal(name('fieldSelector=metadata.name'), '')
  assert.equal(name('fieldSelector=metadata.name=x', '/api/v1/namespaces/n/pods/p'), '')
})

test('parseRequest() refuses names that could leave their place, and broken escapes', () => {
  const refused = (url: string) => {
    let message = ''
    assert.throws(
      () => parseRequest('GET', url),
      (error: Error & { code?: number }) => {
        message = error.message
        return error.code === 400
      },
      url,
    )
    return message
  }
  assert.equal(refused('/api/v1/pods/%zz'), 'invalid URL escape "%zz"')
  assert.equal(refused('/api/v1/pods/%ff'), 'invalid URL escape "/api/v1/pods/%ff"')
  assert.equal(refused('/api/v1/pods?labelSelector=%z'), 'invalid URL escape "%z"')
  assert.equal(refused('/api/v1/pods?labelSelector=a;b'), 'invalid semicolon separator in query')
})

test('Query decodes names and values, keeps the first of a name and all in order', () => {
  const query = new Query('a=1&b=x%20y+z&a=2&c&=e&&%61=3&d=x=y')
  assert.equal(query.get('a'), '1')
  assert.deepEqual(query.all('a'), ['1', '2', '3'])
  assert.equal(query.get('b'), 'x y z')
  assert.equal(query.get('c'), '')
  assert.equal(query.get('d'), 'x=y')
  assert.equal(query.has('c'), true)
  assert.equal(query.has('z'), false)
  assert.deepEqual(new Query('').all('a'), [])
})

test('Query gives back what URLSearchParams encodes', () => {
  const pairs = fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })), { maxLength: 8 })
  fc.assert(
    fc.property(pairs, (given) => {
      const query = new Query(new URLSearchParams(given).toString())
      for (const [name] of given) {
        assert.deepEqual(
          query.all(name),
          given.filter(([other]) => other === name).map(([, value]) => value),
        )
      }
    }),
  )
})

test('truthy() takes everything but false and 0 for true', () => {
  for (const value of ['', '1', 'true', 'x', 'no']) assert.equal(truthy(value), true)
  for (const value of [undefined, '0', 'false', 'False']) assert.equal(truthy(value), false)
})

test('parseRequest() leaves a bad name or namespace to what serves the resource: it may not be served at all', () => {
  const fault = (url: string) => parseRequest('GET', url).badSegment
  assert.equal(fault('/api/v1/namespaces/x/pods/..'), `Name parameter invalid: "..": may not be '..'`)
  assert.equal(fault('/api/v1/namespaces/x/pods/%2e'), `Name parameter invalid: ".": may not be '.'`)
  assert.equal(fault('/api/v1/namespaces/..'), `Name parameter invalid: "..": may not be '..'`)
  assert.equal(fault('/api/v1/namespaces/../pods'), `Namespace parameter invalid: "..": may not be '..'`)
  assert.equal(fault('/api/v1/namespaces/../pods/.'), `Name parameter invalid: ".": may not be '.'`)
  assert.equal(fault('/api/v1/namespaces/x/pods/a%25b'), `Name parameter invalid: "a%b": may not contain '%'`)
  assert.equal(fault('/api/v1/namespaces/x/pods/a..b'), '')
})
