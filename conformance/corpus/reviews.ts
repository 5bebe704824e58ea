/** Questions that are answered and never stored. */
import { type Case, type Group, get, post } from '../corpus.ts'

const authorization = '/apis/authorization.k8s.io/v1'
const authentication = '/apis/authentication.k8s.io/v1'
const attributes = { namespace: 'reviews', verb: 'get', resource: 'pods' }

const onNode = { key: 'spec.nodeName', operator: 'In', values: ['n1'] }

const review = (name: string, path: string, kind: string, spec: unknown, group = 'authorization.k8s.io'): Case =>
  post(name, path, { apiVersion: `${group}/v1`, kind, spec })

export const reviews: Group = {
  name: 'reviews',
  cases: [
    review('self access', `${authorization}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', {
      resourceAttributes: attributes,
    }),
    review('self access to a path', `${authorization}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', {
      nonResourceAttributes: { path: '/metrics', verb: 'get' },
    }),
    review('self access to nothing', `${authorization}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', {}),
    review('self access to both', `${authorization}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', {
      resourceAttributes: attributes,
      nonResourceAttributes: { path: '/', verb: 'get' },
    }),
    ...[
      { fieldSelector: {} },
      { fieldSelector: { rawSelector: 'a=b', requirements: [onNode] } },
      { fieldSelector: { rawSelector: 'spec.nodeName=n1' }, labelSelector: { rawSelector: 'a in (c, b)' } },
      { fieldSelector: { rawSelector: 'unreadable' }, labelSelector: { rawSelector: '!!' } },
      { fieldSelector: { requirements: [onNode, { ...onNode, values: ['n1', 'n2'] }] } },
      { fieldSelector: { requirements: [{ ...onNode, operator: 'Later' }] } },
      { fieldSelector: { requirements: [{ operator: 'In', values: [] }] } },
      { fieldSelector: { requirements: [{ ...onNode, operator: 'Exists' }] } },
      { labelSelector: { requirements: [{ key: 'a b', operator: 'In', values: ['-'] }] } },
      {
        labelSelector: {
          requirements: [
            { key: 'a', operator: 'Exists' },
            { key: 'b', operator: 'Like' },
          ],
        },
      },
    ].map((selectors, i) =>
      review(`self access by selector ${i}`, `${authorization}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', {
        resourceAttributes: { ...attributes, verb: 'list', ...selectors },
      }),
    ),
    review('access of nobody to nothing', `${authorization}/subjectaccessreviews`, 'SubjectAccessReview', {}),
    review('access of a master', `${authorization}/subjectaccessreviews`, 'SubjectAccessReview', {
      user: 'x',
      groups: ['system:masters'],
      resourceAttributes: attributes,
    }),
    review('access of nobody', `${authorization}/subjectaccessreviews`, 'SubjectAccessReview', {
      resourceAttributes: attributes,
    }),
    review(
      'local access of a master',
      `${authorization}/namespaces/reviews/localsubjectaccessreviews`,
      'LocalSubjectAccessReview',
      { user: 'x', groups: ['system:masters'], resourceAttributes: attributes },
    ),
    review(
      'local access elsewhere',
      `${authorization}/namespaces/reviews/localsubjectaccessreviews`,
      'LocalSubjectAccessReview',
      { user: 'x', groups: ['system:masters'], resourceAttributes: { ...attributes, namespace: 'other' } },
    ),
    review('rules', `${authorization}/selfsubjectrulesreviews`, 'SelfSubjectRulesReview', { namespace: 'reviews' }),
    review('rules of no namespace', `${authorization}/selfsubjectrulesreviews`, 'SelfSubjectRulesReview', {}),
    review(
      'a token nobody gave out',
      `${authentication}/tokenreviews`,
      'TokenReview',
      { token: 'nonsense' },
      'authentication.k8s.io',
    ),
    review('no token', `${authentication}/tokenreviews`, 'TokenReview', {}, 'authentication.k8s.io'),
    review('who am I', `${authentication}/selfsubjectreviews`, 'SelfSubjectReview', undefined, 'authentication.k8s.io'),
    get('reviews are not listed', `${authorization}/selfsubjectaccessreviews`),
    get('reviews are not read', `${authorization}/selfsubjectaccessreviews/x`),
    review('another kind', `${authorization}/selfsubjectaccessreviews`, 'SubjectAccessReview', {
      resourceAttributes: attributes,
    }),
    post('no body', `${authorization}/selfsubjectaccessreviews`, ''),
    review('dryRun', `${authorization}/selfsubjectaccessreviews?dryRun=All`, 'SelfSubjectAccessReview', {
      resourceAttributes: attributes,
    }),
  ],
}
