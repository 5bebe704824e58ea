import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Labels } from './object.ts'
import { LabelSelector, parseLabelSelector } from './selector.ts'

function fault(text: string): string {
  let message = ''
  assert.throws(
    () => parseLabelSelector(text),
    (error: Error & { code?: number }) => {
      message = error.message
      return error.code === 400
    },
    text,
  )
  return message
}

test('parseLabelSelector() normalises, sorts and drops repeats', () => {
  const cases: [string, string][] = [
    ['', ''],
    ['  ', ''],
    ['b=1,a=2', 'a=2,b=1'],
    ['a==1', 'a=1'],
    ['a in (1)', 'a=1'],
    ['a notin (1)', 'a!=1'],
    ['a in (c, b,b)', 'a in (b,c)'],
    ['a in (b,,c)', 'a in (,b,c)'],
    ['a in (,)', 'a='],
    ['a in ()', 'a='],
    ['a=', 'a='],
    ['a=,b', 'a=,b'],
    ['!a , b', '!a,b'],
    ['a>1,a<5', 'a<5,a>1'],
    ['a=1,a=1', 'a=1'],
    ['in in (in,notin)', 'in in (in,notin)'],
    ['x.y/a=in', 'x.y/a=in'],
  ]
  for (const [text, canonical] of cases) {
    const selector = parseLabelSelector(text)
    assert.equal(selector.toString(), canonical, text)
    assert.equal(selector.empty, canonical === '')
  }
  const selector = parseLabelSelector('b in (2,1),a==x,c!=y,d')
  assert.deepEqual(selector.equalities, [['a', 'x']])
  assert.deepEqual(selector.requirements, [
    { key: 'a', operator: 'in', values: ['x'] },
    { key: 'b', operator: 'in', values: ['1', '2'] },
    { key: 'c', operator: 'notin', values: ['y'] },
    { key: 'd', operator: 'exists', values: [] },
  ])
})

test('matches() follows every operator, absent keys included', () => {
  const labels = new Map([
    ['a', '1'],
    ['b', ''],
    ['n', '9007199254740993'],
    ['w', 'x1'],
  ])
  const yes = [
    '',
    'a',
    '!z',
    'a=1',
    'a!=2',
    'z!=1',
    'z notin (1,2)',
    'a in (1,2)',
    'a notin (2,3)',
    'b=',
    'b in ()',
    'a>0',
    'a<2',
    'n>9007199254740992',
    'a=1,b,!z',
  ]
  const no = [
    'z',
    '!a',
    'a=2',
    'a!=1',
    'z=',
    'z in (1,2)',
    'a in (2,3)',
    'a notin (1,2)',
    'z in ()',
    'a>1',
    'a<1',
    'w>0',
    'z>0',
    'n<9007199254740993',
    'a=1,z',
  ]
  for (const text of yes) assert.equal(parseLabelSelector(text).matches(labels), true, text)
  for (const text of no) assert.equal(parseLabelSelector(text).matches(labels), false, text)
  for (const text of ['!a', 'a!=1', 'a notin (1,2)', ''])
    assert.equal(parseLabelSelector(text).matches(undefined), true)
  for (const text of ['a', 'a=', 'a in (1,2)', 'a>1']) assert.equal(parseLabelSelector(text).matches(undefined), false)
})

test('[A8] a selector of thousands of terms looks at each label of an object, not at each of its terms', () => {
  const terms = 6_000
  const each = (term: (i: number) => string) => Array.from({ length: terms }, (_, i) => term(i))
  let looked = 0
  class Counted extends Map<string, string> {
    override get(label: string) {
      looked++
      return super.get(label)
    }
    override has(label: string) {
      looked++
      return super.has(label)
    }
    override *[Symbol.iterator]() {
      for (const pair of super[Symbol.iterator]()) {
        looked++
        yield pair
      }
      return undefined
    }
  }
  const labels = new Counted(Object.entries({ app: 'web', n: '7000', tier: 'x' }))
  const cases: [terms: string[], matches: boolean][] = [
    [each((i) => `!a${i}`), true],
    [each((i) => `a${i}!=x`), true],
    [each((i) => `app!=a${i}`), true],
    [each((i) => `n>${i}`), true],
    [each((i) => `app in (web,w${i})`), true],
    [[...each((i) => `!a${i}`), '!tier'], false],
    [each((i) => `a${i}`), false],
  ]
  for (const [list, matches] of cases) {
    const selector = parseLabelSelector(list.join(','))
    looked = 0
    assert.equal(selector.matches(labels), matches, `${list[0]}`)
    assert.ok(looked <= labels.size, `${list[0]}: ${looked} looks at ${labels.size} labels`)
  }
})

test('[A8] a set of thousands of values is looked up, not searched', () => {
  for (const operator of ['in', 'notin'] as const) {
    let searched = 0
    const values = Array.from({ length: 6_000 }, (_, i) => `v${i}`)
    const includes = (value: string) => {
      searched++
      return values.indexOf(value) >= 0
    }
    const selector = new LabelSelector([{ key: 'a', operator, values: Object.assign(values, { includes }) }])
    assert.equal(selector.matches(new Map([['a', 'v5999']])), operator === 'in')
    assert.equal(selector.matches(new Map([['a', 'v6000']])), operator === 'notin')
    assert.equal(searched, 0)
  }
})

test('many requirements select what each of them does', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'x.y/d')
  const value = fc.constantFrom('', '1', '2', '3', 'in')
  const values = fc.array(value, { minLength: 1, maxLength: 4 }).map((list) => `(${list.join(',')})`)
  const requirement = fc.oneof(
    key,
    fc.tuple(fc.constantFrom('a', 'z', 'y'), fc.constant('')).map(([k]) => `!${k}`),
    fc.tuple(key, fc.constantFrom('=', '!='), value).map((parts) => parts.join('')),
    fc.tuple(key, fc.constant('notin'), values).map((parts) => parts.join(' ')),
    fc.tuple(key, fc.constant('in'), fc.constant('(1,2,3)')).map((parts) => parts.join(' ')),
    fc.tuple(key, fc.constantFrom('>', '<'), fc.constantFrom('0', '1', '4')).map((parts) => parts.join('')),
  )
  const pairs = fc.uniqueArray(fc.tuple(key, value), { selector: ([k]) => k })
  // Those that match by themselves are more likely to match together.
  const filler = Array.from({ length: 9 }, (_, i) => `f${i}!=x`)
  let matched = 0
  const holds = fc.property(fc.array(requirement, { maxLength: 4 }), pairs, (list, given) => {
    const labels = given.length === 0 ? undefined : new Labels(given.flat() as string[])
    const expected = list.every((one) => parseLabelSelector(one).matches(labels))
    if (expected && list.length > 1) matched++
    assert.equal(parseLabelSelector([...list, ...filler].join(',')).matches(labels), expected)
  })
  fc.assert(holds, { numRuns: 3_000 })
  assert.ok(matched > 100, `only ${matched} say anything`)
})

test('parseLabelSelector() complains in the words of kube-apiserver', () => {
  assert.equal(fault('a,'), "found '', expected: identifier after ','")
  assert.equal(fault('=x'), "found '=', expected: !, identifier, or 'end of string'")
  assert.equal(fault('!a=b'), "found '=', expected: ',' or 'end of string'")
  const because = 'unable to parse requirement: '
  assert.equal(fault('a b'), `${because}found 'b', expected: in, notin, =, ==, !=, gt, lt`)
  assert.equal(fault('a constructor b'), `${because}found 'constructor', expected: in, notin, =, ==, !=, gt, lt`)
  assert.equal(fault('a in x'), `${because}found 'x' expected: '('`)
  assert.equal(fault('a in (=)'), `${because}found '=', expected: ',', ')' or identifier`)
  assert.equal(fault('a in (b c)'), `${because}found 'c', expected: ',' or ')'`)
  assert.equal(fault('a in (b,!c)'), `${because}found '!', expected: ',', or identifier`)
  assert.equal(fault('!'), `${because}found '', expected: identifier`)
  assert.equal(fault('a=(b)'), `${because}found '(', expected: identifier`)
  assert.equal(
    fault('a>1x'),
    `${because}values[0]: Invalid value: "1x": for 'Gt', 'Lt' operators, the value must be an integer`,
  )
  const shape =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
  assert.equal(fault('a_'), `${because}<nil>: Invalid value: "a_": name part ${shape}`)
  assert.equal(fault('a/'), `${because}<nil>: Invalid value: "a/": name part must be non-empty; name part ${shape}`)
  assert.equal(fault('/a'), `${because}<nil>: Invalid value: "/a": prefix part must be non-empty`)
  assert.match(fault('a/b/c'), /^unable to parse requirement: <nil>: Invalid value: "a\/b\/c": a valid label key must/)
  assert.match(fault(`${'p'.repeat(254)}/a`), /: prefix part must be no more than 253 bytes$/)
  assert.match(fault('x'.repeat(64)), /: name part must be no more than 63 bytes$/)
  assert.match(fault(`a=${'x'.repeat(64)}`), /values\[0\]\[a\]: Invalid value: "x+": must be no more than 63 bytes$/)
  assert.match(fault('a in (b_,c_)'), /^unable to parse requirement: \[values\[0\]\[a\]: .*, values\[1\]\[a\]: .*\]$/)
})

test('a canonical text parses to itself and selects the same', () => {
  const key = fc.constantFrom('a', 'b', 'x.y/c')
  const value = fc.constantFrom('', '1', '2', 'in')
  const values = fc.array(value, { minLength: 1, maxLength: 3 }).map((list) => `(${list.join(',')})`)
  const requirement = fc.oneof(
    key,
    key.map((k) => `!${k}`),
    fc.tuple(key, fc.constantFrom('=', '==', '!='), value).map((parts) => parts.join('')),
    fc.tuple(key, fc.constantFrom('in', 'notin'), values).map((parts) => parts.join(' ')),
    fc.tuple(key, fc.constantFrom('>', '<'), fc.constantFrom('1', '2')).map((parts) => parts.join('')),
  )
  const labels = fc.array(fc.tuple(key, value)).map((pairs) => new Map(pairs))
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), labels, (list, given) => {
      const selector = parseLabelSelector(list.join(','))
      const again = parseLabelSelector(selector.toString())
      assert.deepEqual(again.requirements, selector.requirements)
      assert.equal(again.matches(given), selector.matches(given))
      assert.equal(
        selector.matches(given),
        list.every((one) => parseLabelSelector(one).matches(given)),
      )
    }),
  )
})
