/** The board and the alerts in deploy/ speak of what a running edge or hub tells, and of nothing else. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { until } from '../src/base/until.test-support.ts'
import { withHubbedSite } from './hubprocess.ts'

const read = (file: string) => readFileSync(join(import.meta.dirname, '..', 'deploy', file), 'utf8')
type Rules = { groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[] }
type Board = { panels: { title: string; targets: { expr: string }[] }[] }

/** Every metric that an expression names, with the labels it asks for by equality. */
function askedIn(expression: string): { name: string; labels: string[] }[] {
  const found = expression.matchAll(/\b((?:ake|process)_[a-z_]+)(?:\{([^}]*)\})?/g)
  return [...found].map(([, name = '', matchers = '']) => ({
    name,
    labels: [...matchers.matchAll(/\w+="[^"]*"/g)].map(String).filter((one) => !one.startsWith('job=')),
  }))
}

test('every metric and label value that the board or an alert names is told by a real edge or hub, in a form that can be read', () =>
  withHubbedSite(async (site) => {
    await site.startHub()
    await site.go('direct', '--mirror', 'configmaps', '--node', 'n1')
    const rules = (load(read('prometheus-rules.yaml')) as Rules).groups.flatMap((group) => group.rules)
    const { panels } = JSON.parse(read('grafana-board.json')) as Board
    const expressions = [
      ...rules.map(({ alert, expr }) => [alert, expr] as const),
      ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
    ]
    const told = async () => (await site.administrator().ask('GET', '/metrics')).body.toString()
    await until(async () => /^ake_data_age_seconds\{.*resource="configmaps"/m.test(await told()), 'mirrored')
    await site.client().ask('GET', '/api/v1/namespaces/default/events')
    const text = `${await told()}${await (await fetch(`${site.hub.health}/metrics`)).text()}`
    const lines = text.split('\n').filter((line) => line !== '')
    for (const line of lines) {
      assert.match(
        line,
        /^(# (HELP|TYPE) \w+ .+|[a-z_]+(\{(\w+="([^"\\\n]|\\.)*",?)+\})? (-?\d+(\.\d+)?(e[+-]?\d+)?|[+-]Inf|NaN))$/,
      )
    }
    for (const [where, expression] of expressions) {
      const asked = askedIn(expression)
      assert.ok(asked.length > 0 || expression.startsWith('up{'), `${where} asks for nothing of ours`)
      for (const { name, labels } of asked) {
        const found = lines.some(
          (line) => new RegExp(`^${name}[{ ]`).test(line) && labels.every((label) => line.includes(label)),
        )
        const isCounter = text.includes(`# TYPE ${name} counter`)
        assert.ok(found || (isCounter && labels.length === 0), `${where}: ${name} ${labels.join()} is not told`)
      }
    }
    assert.match(text, /^ake_build_info\{version="[^"]+",kubernetes="[^"]+",node="[^"]+"\} 1$/m)
  }))
