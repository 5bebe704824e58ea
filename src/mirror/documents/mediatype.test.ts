import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptsGzip, formOf, isUnchanged, nearestForm, normalAccept } from './mediatype.ts'

const v2 = 'application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2'

test('an Accept header has one spelling', () => {
  assert.equal(normalAccept(undefined), '*/*')
  assert.equal(normalAccept(''), '*/*')
  assert.equal(normalAccept(' Application/JSON ; q=1.0 ,  */* ; q=0.8,'), 'application/json,*/*;q=0.8')
  assert.equal(normalAccept('application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'), v2)
  assert.equal(normalAccept(['a/b', 'c/d']), 'a/b,c/d')
  assert.notEqual(normalAccept('a/b,c/d'), normalAccept('c/d,a/b'))
})

test('the profile of aggregated discovery is part of its form', () => {
  const type = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  assert.equal(formOf(type, v2), v2)
  assert.equal(formOf(type, `${v2};profile=nopeer`), `${v2};profile=nopeer`)
  assert.equal(formOf('application/json', `${v2};profile=nopeer,application/json`), 'application/json')
})

test('the nearest of the forms held', () => {
  const protobuf = 'application/vnd.kubernetes.protobuf'
  const openapi = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
  const forms = [protobuf, v2, 'application/json', openapi]
  for (const [accept, form] of [
    ['*/*', 'application/json'],
    ['application/*', 'application/json'],
    [`application/json,${v2}`, v2],
    [`${v2};profile=nopeer,application/json`, v2],
    [v2.replace('v=v2', 'v=v2beta1'), undefined],
    [`${v2.replace('v=v2', 'v=v2beta1')},application/json`, 'application/json'],
    ['application/json;q=0.5,application/vnd.kubernetes.protobuf', protobuf],
    ['application/com.github.proto-openapi.spec.v2@v1.0+protobuf', openapi],
    ['text/html', undefined],
  ] as const) {
    assert.equal(nearestForm(forms, normalAccept(accept)), form, accept)
  }
})

test('gzip and tags', () => {
  for (const yes of ['gzip', 'deflate, gzip;q=1.0', 'br,gzip']) assert.ok(acceptsGzip(yes), yes)
  for (const no of [undefined, '', 'gzip;q=0', 'deflate', 'x-gzip2']) assert.ok(!acceptsGzip(no), String(no))
  assert.ok(isUnchanged('"a"', '"a"', true))
  for (const tag of ['W/"a"', '"b", "a"', '*']) {
    assert.ok(isUnchanged(tag, '"a"', false), tag)
    assert.ok(!isUnchanged(tag, '"a"', true), tag)
  }
  assert.ok(!isUnchanged('*', '', false))
  assert.ok(!isUnchanged(undefined, '"a"', false))
})
