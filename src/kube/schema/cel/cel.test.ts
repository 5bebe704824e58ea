import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type JsonObject } from '../../json/json.ts'
import { checkCustom } from '../check.ts'
import type { Schema } from '../schema.ts'

function check(rule: string, object: unknown = {}, properties: Record<string, Schema> = {}) {
  const schema: Schema = { type: 'object', properties, 'x-kubernetes-validations': [{ rule }] }
  return checkCustom(fromPlain(object) as JsonObject, schema)
}

const holding = [
  // versions
  'semver("1.2.3").isLessThan(semver("1.10.0"))',
  'semver("2.0.0").isGreaterThan(semver("1.99.99"))',
  'semver("1.0.0-alpha.2").isLessThan(semver("1.0.0-alpha.10"))',
  'semver("1.0.0-alpha").isLessThan(semver("1.0.0-alpha.1"))',
  'semver("1.0.0-1").isLessThan(semver("1.0.0-a"))',
  'semver("1.0.0+build").compareTo(semver("1.0.0")) == 0',
  '!isSemver("1.0") && isSemver("v1.0", true) && semver("v01.2", true).minor() == 2',
  // quantities
  'quantity("100m").add(quantity("0.9")).asInteger() == 1',
  'quantity("1Ki").sub(24).compareTo(quantity("1k")) == 0',
  'quantity("-1").sign() == -1 && !quantity("1.5").isInteger() && quantity("1.5").asApproximateFloat() == 1.5',
  '!isQuantity("1KiB") && !isQuantity("") && isQuantity("1e3")',
  // addresses
  'ip("10.0.0.1").family() == 4 && ip("169.254.1.1").isLinkLocalUnicast() && ip("224.0.0.1").isLinkLocalMulticast()',
  'ip("::").isUnspecified() && ip("8.8.8.8").isGlobalUnicast() && !ip("127.0.0.1").isGlobalUnicast()',
  '!isIP("256.1.1.1") && !isIP("::ffff:1.2.3.4") && ip("::1") == ip("0:0::1")',
  'cidr("fd00::/8").containsIP(ip("fd12::1")) && !cidr("fd00::/8").containsIP("10.0.0.1")',
  'string(cidr("192.168.1.7/24").masked()) == "192.168.1.0/24" && !isCIDR("10.0.0.0/33")',
  'string(cidr("fd00::1/64").masked()) == "fd00::/64"',
  // urls
  'url("/path?a=1&a=2").getQuery() == {"a": ["1", "2"]} && url("/p").getHost() == ""',
  'url("https://[::1]:80/").getHostname() == "::1" && !isURL("a b") && !isURL("../x")',
  // strings
  '"tacocat".reverse() == "tacocat" && "  x ".trim() == "x" && "abc".charAt(3) == ""',
  '"hello hello".replace("he", "we") == "wello wello" && "hello hello".replace("he", "we", 1) == "wello hello"',
  '"%d%%".format([5]) == "5%" && "%s".format([true]) == "true" && "%X".format([255]) == "FF"',
  '"%b %o %e".format([5, 8, 1500.0]) == "101 10 1.500000e+03"',
  'strings.quote("a\\"b") == "\\"a\\\\\\"b\\""',
  // lists
  '["a", "b"].isSorted() && [1.5, 2.5].sum() == 4.0 && ["b", "a"].min() == "a" && [].sum() == 0',
  '[[1], [2]].indexOf([2]) == 1 && [1, 1].lastIndexOf(1) == 1 && [1].indexOf(3) == -1',
  'sets.contains([1, 2], [2, 2]) && !sets.equivalent([1], [1, 2])',
  // formats
  'format.dns1035Label().validate("1a").hasValue() && !format.labelValue().validate("").hasValue()',
  'format.named("uuid").value().validate("x").hasValue() && !format.named("nothing").hasValue()',
  '!format.qualifiedName().validate("example.com/name").hasValue()',
  '!format.dns1123LabelPrefix().validate("abc-").hasValue()',
]

for (const rule of holding) {
  test(`rule holds: ${rule}`, async () => assert.deepEqual(await check(rule), { errors: [], warnings: [] }))
}

const failing: Array<[rule: string, text: RegExp]> = [
  ['[].min() == 1', /^Invalid value: "object": min called on empty list evaluating rule: /],
  ['quantity("x").sign() == 1', /quantities must match the regular expression/],
  ['"a".matches("[")', /Illegal regex/],
  ['int("x") == 1', /cannot convert to int/],
  ['10 % 0 == 1', /^Invalid value: "object": modul(us|o) by zero evaluating rule/],
  ['"%d".format(["x"]) == ""', /error during formatting/],
]

for (const [rule, text] of failing) {
  test(`rule fails on its data: ${rule}`, async () => {
    const verdict = await check(rule)
    assert.equal(verdict.errors.length, 1)
    assert.match(verdict.errors[0]?.text ?? '', text)
  })
}

test('rule: the name, kind and version of a resource are known without being specified', async () => {
  const object = { apiVersion: 'a/v1', kind: 'A', metadata: { name: 'x', labels: { a: 'b' } } }
  const rule =
    'self.metadata.name == "x" && self.kind == "A" && self.apiVersion == "a/v1" && !has(self.metadata.labels)'
  assert.deepEqual((await check(rule, object)).errors, [])
})

test('rule: integers beyond 2^53 keep every digit', async () => {
  const schema: Record<string, Schema> = { n: { type: 'integer' } }
  assert.deepEqual((await check('self.n == 9007199254740993', { n: 9007199254740993n }, schema)).errors, [])
  assert.equal((await check('self.n == 9007199254740992', { n: 9007199254740993n }, schema)).errors.length, 1)
})

test('rule: a string literal that speaks of matches( stays what it is', async () => {
  assert.deepEqual((await check('"matches(".size() == 8 && "ab".matches("(?i)^AB$")')).errors, [])
})
