import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { checkText } from './check.ts'
import type { RebootCheck } from './survival.ts'
import { columnsMax } from './terminal.ts'

const checks: RebootCheck[] = [
  { name: 'node', state: 'ok', what: 'this is node edge-1' },
  { name: 'names', state: 'failed', what: 'not held: secrets a/s (the edge may not read it)' },
  {
    name: 'rights',
    state: 'failed',
    what: 'the edge may not read secrets a/s',
    todo: 'grant them:',
    commands: ['kubectl create x', 'kubectl create y'],
  },
]

test('what several checks ask for is said once', () => {
  const state = 'warning'
  const [one, other] = ['renew it', 'look'].map((todo) => (name: string) => ({ name, state, what: '', todo }) as const)
  const text = checkText({ survives: 'yes', checks: [other!('pods'), one!('credentials'), other!('names')] })
  assert.equal(text.split('To do:\n')[1], 'pods, names: look\ncredentials: renew it\n')
})

test('the verdict comes first, then what was found, then what to do', () => {
  assert.equal(
    checkText({ survives: 'no', checks }),
    `This node would NOT come back from a reboot without its API server.

CHECK    STATE    FOUND
node     ok       this is node edge-1
names    FAILED   not held: secrets a/s (the edge may not read it)
rights   FAILED   the edge may not read secrets a/s

To do:
rights: grant them:
kubectl create x
kubectl create y
`,
  )
  assert.equal(
    checkText({ survives: 'yes', checks: checks.slice(0, 1) }),
    `This node would come back from a reboot without its API server.

CHECK   STATE   FOUND
node    ok      this is node edge-1
`,
  )
})

test('it fits a terminal of 100 columns whatever was found; a command that goes on in the next line is one to a shell', () => {
  const long = 'credentials that are about to end, each with a name. '.repeat(12)
  const word = `--resource=${'x'.repeat(150)}`
  const command = `echo kubectl create role ${'a'.repeat(60)} -n ${'b'.repeat(60)} ${word} --verb=get,list,watch`
  const text = checkText({
    survives: 'no',
    checks: [{ name: 'credentials', state: 'warning', what: long, todo: `${long}\n${long}`, commands: [command] }],
  })
  for (const line of text.split('\n')) assert.ok(line.length <= columnsMax, line)
  assert.match(text, /^credentials {3}warning {3}credentials that/m, 'names are whole')
  const pasted = text.slice(text.indexOf('echo kubectl'))
  assert.equal(execFileSync('sh', ['-c', pasted], { encoding: 'utf8' }), `${command.slice('echo '.length)}\n`)
})
