import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { bare } from './bare.ts'

test('comments, indentation and what types leave behind go; lines stay', () => {
  const source = '/** Why.\n * More. */\nfunction a(b        , c) {\n  // Then.\n  return b/* once */ - c // all\n}\n'
  assert.equal(bare(source), '\n\nfunction a(b , c) {\n\nreturn b  - c \n}\n')
})

const untouched: readonly [what: string, code: string][] = [
  ['text with comments in it', `x("// no", '/* no */', "it's", 'a  b')`],
  ['text with escaped quotes', `x('it\\'s  // no', "\\\\")`],
  ['a template', `x(\`  // no\n   /* no */  \${a}  \`)`],
  ['a template in a template', `x(\`  \${a(\`  \${b}  \`)}  // no\`)`],
  ['a brace in a template', `x(\`\${a.map((b) => { return { c: \`  \` } })}  }  \`)`],
  ['a regular expression', `x(/['"\`]  \\/\\/ no/g)`],
  ['one with a slash in brackets', `a = /[/'"]  */`],
  ['one after a word', `return /'  /.test(a)`],
  ['one in a template', `x(\`\${/\`  "/.exec(a)}  \`)`],
  ['a division', "a = (b / 2) / c['d'] / e"],
]
for (const [what, code] of untouched) {
  test(`${what} is code, blanks and all`, () => assert.equal(bare(`  ${code} // '"\`\n`), `${code} \n`))
}

test('every file of ours is as many lines without, and still a program of the same characters', () => {
  const root = join(import.meta.dirname, '..')
  const files = globSync('**/*.ts', { cwd: root, exclude: ['**/*.test.ts', '**/*.test-support.ts'] })
  assert.ok(files.length > 400)
  for (const file of files) {
    const source = stripTypeScriptTypes(readFileSync(join(root, file), 'utf8'))
    const found = bare(source)
    assert.equal(found.split('\n').length, source.split('\n').length, file)
    assert.doesNotThrow(() => stripTypeScriptTypes(found), file)
    const [rest, whole] = [found, source].map((text) => text.replaceAll(/\s+/g, ''))
    assert.ok(isWithin(rest as string, whole as string), file)
  }
})

/** Whether a text is another one with some left out. */
function isWithin(part: string, whole: string): boolean {
  let at = 0
  for (let i = 0; i < whole.length && at < part.length; i++) if (whole[i] === part[at]) at++
  return at === part.length
}
