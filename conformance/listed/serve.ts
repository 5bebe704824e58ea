/** Where `ake serve` differs from kube-apiserver on purpose, by the cases of the differential corpus that show it. */
import type { Difference } from './listed.ts'

export const serve: readonly Difference[] = [
  {
    id: 'priority-and-fairness',
    real: 'names the flow schema and priority level that admitted the request',
    ours: 'no such headers',
    why: 'there is no priority and fairness; limits are fixed (see under pressure)',
    where: {
      'header.x-kubernetes-pf-*': ['*'],
    },
  },
  {
    id: 'table-prose',
    real: "explains each column of a built-in's Table",
    ours: 'an empty description',
    why: "the facts about built-ins are kept without Kubernetes' prose; a CRD's own descriptions are served",
    where: {
      'body.columnDefinitions[*].description': [
        'tables/*',
        'negotiation/*',
        'paging/*',
        'creates/*',
        'updates/*',
        'patches/*',
        'deletes/*',
        'subresources/*',
        'conversions/*',
      ],
      'frames[*].object.columnDefinitions[*].description': ['watches/*'],
      '*columnDefinitions[0].description': ['customs/*'],
    },
  },
  {
    id: 'openapi-prose',
    real: 'explains every type, field and parameter',
    ours: "no descriptions, but for CRDs' own",
    why: "the facts about built-ins are kept without Kubernetes' prose, which would be most of their size",
    where: {
      'body.*.description': ['discovery/*openapi*', 'customs/openapi of the group'],
    },
  },
  {
    id: 'anonymous',
    real: 'authorizes a caller without credentials as system:anonymous, mostly 403',
    ours: '401',
    why: 'without `--authorization rbac` whoever is known may do everything, and nobody else is let in; with it, it is the same',
    where: {
      '*': ['reads/no certificate*'],
    },
  },
  {
    id: 'openapi-v2',
    real: 'shared parameters by reference, media types in the order of its routes, options and events named in groups that it does not serve',
    ours: 'the same operations and definitions, each with its parameters in place, made from the v3 documents',
    why: 'one set of facts for both forms; kubectl reads only the definitions of v2',
    where: {
      'body.paths.*': ['discovery/openapi v2*'],
      'body.parameters': ['discovery/openapi v2*'],
      'body.definitions.*.x-kubernetes-group-version-kind*': ['discovery/openapi v2*'],
      'body.components.schemas.io.k8s.*.x-kubernetes-group-version-kind*': ['customs/openapi of the group'],
    },
  },
  {
    id: 'openapi-caching',
    real: 'serves ranges and Last-Modified',
    ours: 'serves ETags only, the index included',
    why: 'documents are named by a hash; nobody asks for parts of them',
    where: {
      'header.accept-ranges': ['customs/openapi of the group', 'discovery/*openapi*'],
      'header.last-modified': ['customs/openapi of the group', 'discovery/*openapi*'],
      'header.etag': ['discovery/document /openapi/v3'],
    },
  },
  {
    id: 'root-paths',
    real: 'lists every check and endpoint of its own',
    ours: 'lists what is served here',
    why: 'there are fewer of them',
    where: {
      'body.paths*': ['discovery/document /'],
    },
  },
  {
    id: 'health-checks',
    real: 'one line per check of its own parts',
    ours: 'one line per check of ours',
    why: 'the parts differ; the form and the single checks are the same',
    where: {
      body: ['discovery/document /*verbose*'],
    },
  },
  {
    id: 'service-account-tokens',
    real: 'signs service account tokens with the key that it is given',
    ours: 'with one of its own, by ES256',
    why: 'a key that each server makes for itself; ES256 needs no second to make one',
    where: {
      'body.*': ['discovery/path /.well-known/openid-configuration', 'discovery/path /openid/v1/jwks'],
      'body.status.token': ['subresources/token of a service account'],
    },
  },
  {
    id: 'kubelet-connections',
    real: 'connects to kubelets, pods and services',
    ours: '501',
    why: 'this server reaches out to nobody',
    where: {
      '*': ['subresources/attach', 'subresources/exec', 'subresources/portforward', 'subresources/proxy of a service'],
    },
  },
  {
    id: 'plain-bookmarks',
    real: 'bookmarks about once a minute',
    ours: 'the same, one when a resumed watch has caught up, one behind the closing one of `sendInitialEvents`, and one before the end of the stream',
    why: 'the client resumes from there and misses nothing, whatever happens to the history',
    where: {
      frames: ['watches/*'],
    },
  },
  {
    id: 'watch-of-the-future',
    real: 'waits in silence for a version that it never gave out',
    ours: '410 at once',
    why: 'here is the only authority: such a version is of another past, and silence would hide that',
    where: {
      'frames.length': ['watches/version far ahead'],
    },
  },
  {
    id: 'broken-query',
    real: 'drops a parameter that it cannot decode; a path gets a bare 400',
    ours: '400 with a Status',
    why: 'a broken selector must not become "everything"',
    where: {
      '*': ['errors/path *%zz'],
    },
  },
  {
    id: 'bad-namespace',
    real: '500: its storage refuses the key',
    ours: '400 in the words it has for such names',
    why: 'nothing of the kind gets as far as storage',
    where: {
      '*': ['errors/path /api/v1/namespaces/../pods'],
    },
  },
  {
    id: 'business-rules',
    real: "validates what a built-in kind's fields mean",
    ours: 'takes it',
    why: "of built-ins only types, required fields, metadata and the contents of ConfigMaps and Secrets are checked; the rest stays kube-apiserver's",
    where: {
      '*': ['conversions/event for another namespace'],
    },
  },
  {
    id: 'admission',
    real: 'runs admission plugins, which add to what was sent',
    ours: 'stores what was sent and its defaults, without empty optional lists and maps',
    why: "what one plugin of many would do stays kube-apiserver's",
    where: {
      'body.spec.taints': ['errors/create a node with a namespace'],
      'body.metadata.finalizers': ['nulls/*claim*'],
    },
  },
  {
    id: 'only-stored',
    real: 'calls webhooks, evaluates admission policies and pod security levels, enforces quotas and limits, passes requests on to API services',
    ours: 'stores these objects and warns whoever writes one',
    why: 'this server runs no admission and reaches out to nobody',
    where: {
      'header.warning': [
        'creates/only stored here: *',
        'verbs/* admissionregistration.k8s.io/*',
        'verbs/* v1 ResourceQuota*',
        'verbs/* v1 LimitRange*',
      ],
    },
  },
  {
    id: 'conditions-at-once',
    real: 'a definition is established by a controller, a moment after the answer',
    ours: 'established in the answer',
    why: 'a definition takes effect with the write',
    where: {
      'body.status.conditions': ['definitions/*'],
      'body.status.acceptedNames*': ['definitions/*'],
      'body.status.*': ['customs/define', 'customs/a second definition*', 'endings/define', 'costs/define'],
      'body.metadata.resourceVersion': ['customs/*definition*', 'definitions/*'],
      'body.metadata.managedFields*': [
        'definitions/*',
        'customs/define',
        'customs/*definition*',
        'endings/define',
        'costs/define',
      ],
    },
  },
  {
    id: 'conversion-webhooks',
    real: 'calls webhooks to convert between versions',
    ours: 'refuses the strategy',
    why: 'this server reaches out to nobody',
    where: {
      'body.*': ['definitions/create: a webhook without a client'],
    },
  },
  {
    id: 'administrator',
    real: "names the certificate's user and what RBAC gives it",
    ours: 'every known caller may do everything, and a certificate has no digest in `extra`',
    why: 'without `--authorization rbac` roles do not count',
    where: {
      'body.status.userInfo.*': ['reviews/who am I'],
      'body.status.*': ['reviews/rules*'],
    },
  },
  {
    id: 'yaml-faults',
    real: "go-yaml's words",
    ours: "js-yaml's words",
    why: 'another parser says where it stumbled in its own way',
    where: {
      'body.message': ['negotiation/create from broken yaml'],
    },
  },
  {
    id: 'go-quirks',
    real: 'a singular name, null for no rows, a lost annotation',
    ours: 'the plural, an empty list, the annotation',
    why: 'accidents of single kinds that no client depends on',
    where: {
      'body.*': ['errors/path /api/v1/componentstatuses/nope'],
      'body.rows': ['tables/table */limitranges', 'tables/table */roles'],
      'body.rows[*].object.metadata.annotations': ['tables/table */daemonsets'],
    },
  },
  {
    id: 'number-spelling',
    real: 'prints floats anew: 1.50 becomes 1.5',
    ours: 'keeps the spelling',
    why: 'bytes served equal bytes stored (A5)',
    where: {
      'body.items[*].spec.extra.*': ['customs/by a selectable field'],
      'body.spec.extra.*': ['customs/a large int64*'],
    },
  },
  {
    id: 'namespace-ends',
    real: 'leaves the contents of an ending namespace to a controller',
    ours: 'its contents are being deleted at once',
    why: 'there is no controller manager; a namespace ends by itself',
    where: {
      'body.metadata.deletion*': ['endings/patch in an ending namespace'],
    },
  },
  {
    id: 'autoscaler-v1-table',
    real: 'shows all metrics in the Table of autoscaling/v1 too',
    ours: 'shows what v1 itself can say',
    why: 'the Table is made from the version that was asked for',
    where: {
      'body.rows[*].cells[2]': ['conversions/all as Table of v1'],
    },
  },
  {
    id: 'autoscaler-v1-owners',
    real: "an autoscaler's status written through autoscaling/v1 owns the annotation in which v1 keeps the metrics that it has no field for",
    ours: 'it owns the status alone',
    why: 'the annotation is made when v1 is read, it is no part of what is stored',
    where: {
      'body.metadata.managedFields*': ['conversions/status through v*'],
      'frames[*].object.metadata.managedFields*': ['conversions/autoscalers as v1'],
    },
  },
  {
    id: 'rule-costs',
    real: 'estimates what a rule may cost and refuses it if that is too much',
    ours: 'takes it; evaluation is limited when it happens',
    why: "an estimate needs all of CEL's cost model",
    where: {
      '*': ['definitions/create: a rule that may cost too much'],
    },
  },
]
