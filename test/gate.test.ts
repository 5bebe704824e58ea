/** The gate's own checks, against samples: each must be able to fail. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { highlights, resultsMarkdown } from '../bench/report.ts'
import { checkImports } from '../scripts/imports.ts'
import { checkLeaks } from '../scripts/leaks.ts'
import { checkActors, checkMentions, checkNames } from '../scripts/mentions.ts'
import { checkReadme, renewParts } from '../scripts/readme.ts'
import { checkRules } from '../scripts/rules.ts'

const table = `Some text.

| folder | may import |
| --- | --- |
| \`base\` | |
| \`kube\` | \`base\` |
| \`cache\` | \`kube\` \`base\` |
| \`app\` | everything |

After it.`

const sound = {
  'src/main.ts': "const { run } = await import('./app/cli.ts')",
  'src/app/cli.ts':
    "import { a } from '../cache/cache.ts'\nimport './other.ts'\nimport p from '../../package.json' with { type: 'json' }",
  'src/app/other.ts': '',
  'src/cache/cache.ts': "import type {\n  Kind,\n} from '../kube/kind.ts'\nimport { readFile } from 'node:fs'",
  'src/cache/cache.test.ts': "import { x } from '../app/other.ts'",
  'src/kube/kind.ts': "export { log } from '../base/log.ts'",
  'src/base/log.ts': '',
}
const faults = (changes: Record<string, string>, document = table) =>
  checkImports(new Map(Object.entries({ ...sound, ...changes })), document)

test('sound imports pass', () => {
  assert.deepEqual(faults({}), [])
})

test('a direction that the table does not allow is found in every form of import', () => {
  const forms = [
    "import { a } from '../kube/kind.ts'",
    "import type { a } from '../kube/kind.ts'",
    "await import('../kube/kind.ts')",
  ]
  forms.push(
    "export * from '../kube/kind.ts'",
    "import '../kube/kind.ts'",
    "new URL('../kube/kind.ts', import.meta.url)",
  )
  for (const form of forms) {
    // Only the direction: without kind.ts's own import there is no cycle to find as well.
    const found = faults({ 'src/base/log.ts': form, 'src/kube/kind.ts': '' })
    assert.deepEqual(found, ['src/base/log.ts: base may not import kube ("../kube/kind.ts")'], form)
  }
  assert.match(faults({ 'src/main.ts': "import './kube/kind.ts'" })[0] ?? '', /may not import kube/)
})

test('sockets are known where the table says, and addresses and types everywhere', () => {
  const forms = [
    "import { connect } from 'node:tls'",
    "import {\n  type Socket,\n  connect,\n} from 'node:net'",
    "import net from 'node:net'",
    "import { WebSocket } from 'ws'",
  ]
  for (const form of forms) {
    assert.match(
      faults({ 'src/kube/more.ts': form }).join(),
      /^src\/kube\/more\.ts: kube may not know sockets \(/,
      form,
    )
    assert.deepEqual(faults({ 'src/app/more.ts': form, 'src/kube/more.test.ts': form }), [], form)
  }
  const harmless = "import { isIP, type Socket } from 'node:net'\nimport type { TLSSocket } from 'node:tls'"
  assert.deepEqual(faults({ 'src/kube/more.ts': harmless }), [])
})

test('cycles between files and between folders are found', () => {
  const files = faults({ 'src/app/other.ts': "import { b } from './cli.ts'" })
  assert.deepEqual(files, ['cycle between files: src/app/cli.ts → src/app/other.ts → src/app/cli.ts'])
  const everything = table.replace('| `base` | |', '| `base` | everything |')
  const folders = faults({ 'src/base/more.ts': "import { a } from '../cache/cache.ts'" }, everything)
  assert.match(folders.join(), /^cycle between folders: .*base/)
})

test('a folder in a folder has a row of its own, and who may import the outer one may import it', () => {
  const rooms = table.replace('| `base` | |', '| `base` | |\n| `kube/json` | |')
  const inner = { 'src/kube/json/json.ts': '', 'src/cache/other.ts': "import '../kube/json/json.ts'" }
  assert.deepEqual(faults(inner, rooms), [])
  assert.match(faults(inner).join(), /the table does not list the folder kube\/json/)
  const wrong = { ...inner, 'src/kube/json/json.ts': "import '../../base/log.ts'" }
  assert.match(faults(wrong, rooms).join(), /kube\/json may not import base/)
})

test('the rooms of one folder name each other: what stands for all of them to others does not to them', () => {
  const rooms = table.replace('| `base` | |', '| `base` | |\n| `kube/a` | `kube` |\n| `kube/b` | |')
  const files = { 'src/kube/a/a.ts': "import '../b/b.ts'", 'src/kube/b/b.ts': '' }
  assert.match(faults(files, rooms).join(), /kube\/a may not import kube\/b/)
  assert.deepEqual(faults(files, rooms.replace('`kube/a` | `kube` |', '`kube/a` | `kube/b` |')), [])
})

test('another form of path, a missing file, and a table that lies are found', () => {
  assert.match(
    faults({ 'src/app/other.ts': "import '../../src/kube/kind.ts'" })[0] ?? '',
    /write ".*" as "..\/kube\/kind.ts"/,
  )
  assert.match(faults({ 'src/app/in/other.ts': "import '../../app/cli.ts'" })[0] ?? '', /write ".*" as "..\/cli.ts"/)
  assert.match(faults({ 'src/app/other.ts': "import '../kube/gone.ts'" })[0] ?? '', /does not exist/)
  assert.deepEqual(faults({ 'src/new/x.ts': '' }), ['the table does not list the folder new'])
  assert.deepEqual(faults({}, table.replace('`cache` |', '`cache` `store` |')), [
    'the table lists store, which does not exist',
  ])
  assert.match(faults({}, 'no table')[0] ?? '', /has no table/)
})

test('a rule in force needs a test, and a cited rule a statement', () => {
  const documents = new Map([['docs/api.md', '**A1** (in force) first. **A2** (in force) second. **A3** planned.']])
  const tests = (title: string) => new Map([['src/x.test.ts', `test('${title}', () => {})`]])
  assert.deepEqual(checkRules(documents, tests('[A1, A2] both')), [])
  assert.deepEqual(checkRules(documents, tests('[A1][A2] and [A3] too')), [])
  assert.deepEqual(checkRules(documents, tests('[A1] one')), ['docs/api.md: A2 is in force, but no test cites [A2]'])
  assert.match(checkRules(documents, tests('[A1, A2] [Z9]')).join(), /cites \[Z9\], which no document states/)
})

test('a decision or a place that a comment names has to exist', () => {
  const architecture = '## Decisions\n\n1. **First.** a\n2. **Second.** b\n\n## Flows\n3. **No.** decision\n'
  const found = (text: string) =>
    checkMentions(
      new Map(Object.entries({ 'src/cache/in/copy.ts': '', 'test/a.test.ts': '', 'docs/a.md': text })),
      architecture,
    )
  assert.deepEqual(
    found('decisions 1 and 2; `cache/in/copy`, `cache/in`, `src/cache/in/copy.ts`, `test/a.test.ts`, `etc/passwd`'),
    [],
  )
  assert.deepEqual(found('decision 3 of docs/architecture.md'), ['docs/a.md: there is no decision 3'])
  assert.deepEqual(found('see `cache/copy`'), ['docs/a.md: there is no cache/copy'])
  assert.deepEqual(found('see `test/b.test.ts`'), ['docs/a.md: there is no test/b.test'])
  const beside = (name: string) =>
    checkMentions(
      new Map([
        ['src/a/a.ts', `// \`${name}\``],
        ['src/a/b.ts', ''],
      ]),
      '',
    )
  assert.deepEqual([...beside('b.ts'), ...beside('c.ts')], ['src/a/a.ts: there is no c.ts beside it'])
})

test('generated parts of a document are renewed between their markers', () => {
  const document = 'a\n<!-- options -->\nold\n<!-- /options -->\nb\n'
  const renewed = renewParts(document, { options: 'new $& text\n' })
  assert.equal(renewed, 'a\n<!-- options -->\nnew $& text\n<!-- /options -->\nb\n')
  assert.equal(renewParts(renewed, { options: 'new $& text\n' }), renewed)
  assert.throws(() => renewParts('no markers', { options: '' }), /has no part/)
})

test('a README that has grown beyond what is read in five minutes is named with its size', () => {
  assert.deepEqual(checkReadme('x'.repeat(9_000)), [])
  assert.match(checkReadme('ü'.repeat(4_501)).join(), /9002 bytes, at most 9000/)
})

test('figures stand in groups without empty columns, each missed goal with a sentence, the README has a few of them', () => {
  const figure = (name: string, ake: number, more: object = {}) => ({
    name,
    unit: 'ms CPU',
    measured: { ake },
    ...more,
  })
  const list = figure('LIST of 5,000 pods, HTTP/2', 2, { measured: { ake: 2, nginx: 1 }, versus: 'nginx', atMost: 3 })
  const get = figure('GET of a pod, HTTP/2', 5, { atMost: 4 })
  const other = figure('something', 9, { atLeast: 10 })
  const answer = (...figures: (typeof list)[]) => ({ when: '2026-01-02T03:04:05Z', machine: 'one core', figures })
  const results = { list: answer(list), get: answer(get), commit: answer(other) }
  const text = resultsMarkdown(results)
  const heads = text.split('\n').filter((line) => /\| unit /.test(line))
  assert.deepEqual(
    heads.map((line) => line.replaceAll(' ', '')),
    ['||unit|ake|nginx|ratio|goal|', '||unit|ake|goal|'],
  )
  assert.match(text, /Taken on 2026-01-02 on one core\./)
  const [, missed = ''] = text.split('## Goals missed')
  assert.match(missed, /^- GET of a pod, HTTP\/2 \(5 ms CPU, ≤ 4 ✗\): of so small an answer.*\.$/m)
  assert.match(missed, /^- something \(9 ms CPU, ≥ 10 ✗\): no cause is known yet\.$/m)
  assert.doesNotMatch(missed, /LIST/)
  assert.match(highlights(results), /^- LIST of 5,000 pods, HTTP\/2: \*\*2\*\* ms CPU \(nginx 1\)$/m)
  assert.match(highlights(results), /^1 of 3 goals are met/m)
  assert.doesNotMatch(highlights(results), /something/)
  assert.throws(() => resultsMarkdown({ unheard: answer() }), /no group for the question unheard/)
})

test('registry addresses and private folders are found', () => {
  const found = (path: string, text: string) => checkLeaks(new Map([[path, text]]), ['/app', '/', '/tmp'])
  assert.match(found('package-lock.json', '"resolved": "https://registry/x.tgz"')[0] ?? '', /registry address/)
  const home = ['', 'home', 'jo', ''].join('/') // in one piece it would be a leak itself
  assert.deepEqual(found('a.md', `x\nsee ${home}notes`), [`a.md:2 carries the path ${home}`])
  assert.deepEqual(found('a.md', 'in /app/x'), ['a.md:1 carries the path /app/'])
  assert.deepEqual(found('a.ts', "import '../app/x.ts' // /tmp/x, src/app/y"), [])
})

test('a comment of src that hides who acts is named; titles, messages and other folders are not', () => {
  const files = new Map([
    [
      'src/a.ts',
      "/** For whoever asks. */\nconst a = 1 // Nobody knows\ntest('nobody is told', () => 'https://anybody')\n",
    ],
    ['src/b.ts', '/**\n * A caller, and its body: the busybody is nobodyless.\n * For everybody.\n */\n'],
    ['test/c.ts', '// somebody\n'],
  ])
  assert.deepEqual(
    checkActors(files).map((fault) => fault.split(': ').slice(0, 2).join(' ')),
    [
      'src/a.ts:1 who is "whoever"? a comment names the actor',
      'src/a.ts:2 who is "Nobody"? a comment names the actor',
      'src/b.ts:3 who is "everybody"? a comment names the actor',
    ],
  )
})

test('a name that src exports for a type is declared in no other file; what files keep to themselves may repeat', () => {
  const sound = ['export type Entry = string\ntype Parts = {}', 'export class Index {}\ntype Parts = {}', '']
  const found = (third: string) => {
    const paths = ['src/a.ts', 'src/b/b.ts', 'src/c.ts']
    return checkNames(new Map([...sound.with(2, third).entries()].map(([at, text]) => [paths[at] ?? '', text])))
  }
  assert.deepEqual(found("export { type Entry } from './a.ts'\nconst Index = 1"), [])
  assert.deepEqual(found('export interface Index {}'), ['src/c.ts: Index is something else in src/b/b.ts'])
  assert.deepEqual(found('type Entry = number'), ['src/c.ts: Entry is something else in src/a.ts'])
  assert.deepEqual(found('export type Parts = {}').length, 2)
})
