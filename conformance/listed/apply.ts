/** Where server-side apply differs on purpose, by the cases of conformance/apply/cases; a field begins with the number of the step. */
import type { Difference } from './listed.ts'

export const apply: readonly Difference[] = [
  {
    id: 'number-spelling',
    real: 'prints floats anew: 1.0 becomes 1',
    ours: 'keeps the spelling',
    why: 'bytes served equal bytes stored (A5)',
    where: {
      '*.body.spec.amount': ['values/numbers spelled differently'],
    },
  },
  {
    id: 'scale-of-customs',
    real: "500 where a forced apply of a custom resource's Scale takes the field from somebody: it cannot convert it",
    ours: 'takes the field',
    why: "a fault of kube-apiserver's own that nobody depends on",
    where: {
      '*': ['subresources/scale of a custom resource'],
    },
  },
  {
    id: 'pruned-when-written',
    real: 'prunes with each read what the schema does not know any more',
    ours: 'prunes with the next write',
    why: 'bytes served equal bytes stored (A5)',
    where: {
      '*': ['versions/a schema comes'],
    },
  },
]
