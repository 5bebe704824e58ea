/** What rules and patterns may cost: where kube-apiserver breaks an evaluation off, and in which words. */
import { established, type Group, post, until } from '../corpus.ts'
import { crds, definedVersion, definition } from './definitions.ts'

const tolls = '/apis/tolls.example.com/v1/namespaces/costs/tolls'

const nested = (macro: string, body: string): string =>
  `self.xs.${macro}(a, self.xs.${macro}(b, self.xs.${macro}(c, ${body})))`

const rules: Readonly<Record<string, readonly { readonly rule: string; readonly messageExpression?: string }[]>> = {
  all: [{ rule: nested('all', 'c >= 0') }, { rule: 'false' }],
  exists: [{ rule: nested('exists', 'c < 0') }, { rule: 'false' }],
  filter: [{ rule: 'self.xs.all(a, self.xs.all(b, size(self.xs.filter(c, c > 5)) >= 0))' }],
  many: Array.from({ length: 20 }, () => ({ rule: nested('all', 'c >= 0') })),
  message: [{ rule: 'false', messageExpression: `size(${nested('map', 'c')}) > 0 ? "a" : "b"` }, { rule: 'false' }],
  duration: [{ rule: 'duration(self.s) > duration("1s")' }],
  pattern: [{ rule: 'self.s.matches("^(a+)+$")' }],
}

/** The estimate that kube-apiserver makes of a definition has to let them pass. */
const part = (validations: unknown) => ({
  type: 'object',
  properties: {
    xs: { type: 'array', maxItems: 80, items: { type: 'integer' } },
    s: { type: 'string', maxLength: 100 },
    held: { type: 'string', pattern: '^(a+)+$' },
  },
  'x-kubernetes-validations': validations,
})

const schema = {
  type: 'object',
  properties: Object.fromEntries(Object.entries(rules).map(([name, validations]) => [name, part(validations)])),
}

const toll = (name: string, content: object) => ({
  apiVersion: 'tolls.example.com/v1',
  kind: 'Toll',
  metadata: { name: 'one' },
  [name]: content,
})

const counted = (name: string, count: number) =>
  post(`${name} over ${count}`, `${tolls}?dryRun=All`, toll(name, { xs: Array.from({ length: count }, (_, i) => i) }))

const texts: readonly (readonly [string, string])[] = [
  ['fine', 'a'.repeat(60)],
  ['ascii', `${'a'.repeat(60)}!`],
  ['emoji', `${'a'.repeat(60)}😀`],
]

export const costs: Group = {
  name: 'costs',
  cases: [
    post(
      'define',
      crds,
      definition(
        'tolls',
        'Toll',
        { versions: [definedVersion('v1', { schema: { openAPIV3Schema: schema } })] },
        'tolls.example.com',
      ),
    ),
    until('defined', `${crds}/tolls.tolls.example.com`, established),
    until('served', tolls, (answer) => answer.includes('TollList')),
    ...['all', 'exists', 'filter', 'many', 'message'].flatMap((name) => [5, 80].map((count) => counted(name, count))),
    // The last one that is let through, and the first one that is not.
    ...[58, 59].map((count) => counted('all', count)),
    ...[46, 47].map((count) => counted('many', count)),
    post('a duration of digits', `${tolls}?dryRun=All`, toll('duration', { s: '1'.repeat(100) })),
    ...texts.flatMap(([name, text]) => [
      post(`a rule's pattern on ${name}`, `${tolls}?dryRun=All`, toll('pattern', { s: text })),
      post(`a pattern on ${name}`, `${tolls}?dryRun=All`, toll('pattern', { s: 'a', held: text })),
    ]),
  ],
}
