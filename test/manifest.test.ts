/** What deploy/ gives a hub: on an API server that constrains impersonation it can be nobody by the verb `impersonate`, which RBAC cannot bound. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadAll } from 'js-yaml'

type Rule = {
  readonly verbs: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
}
type Manifest = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly rules?: readonly Rule[]
}

type Mount = { readonly mountPath: string; readonly readOnly?: boolean }

const manifestsOf = (file: string) =>
  loadAll(readFileSync(join(import.meta.dirname, '..', 'deploy', file), 'utf8')) as Manifest[]
const impersonating = (file: string) =>
  manifestsOf(file).flatMap(({ rules = [] }) =>
    rules.filter(({ verbs }) => verbs.some((verb) => verb === 'impersonate' || verb === '*')),
  )

test('the manifest of hubs gives impersonation in the constrained ways alone', () => {
  assert.deepEqual(impersonating('hub.yaml'), [])
})

test('what an older API server needs besides names no group but that of nodes, and stands alone in its file', () => {
  const named = manifestsOf('hub-legacy.yaml').map(({ kind, metadata }) => `${kind} ${metadata.name}`)
  assert.deepEqual(named, ['ClusterRole ake-hub-impersonation', 'ClusterRoleBinding ake-hub-impersonation'])
  const groups = impersonating('hub-legacy.yaml').filter(({ resources }) => resources?.includes('groups'))
  assert.deepEqual(
    groups.map(({ resourceNames }) => resourceNames),
    [['system:nodes']],
  )
})

test('the credential of an edge lies where its pod or its unit may write: the edge renews it', () => {
  const textOf = (file: string) => readFileSync(join(import.meta.dirname, '..', ...file.split('/')), 'utf8')
  const credentialsIn = (text: string) =>
    [...text.matchAll(/\bcredential:? (\/[^\s`]+)/g)].map(([, path]) => path ?? '')
  const [pod] = loadAll(textOf('deploy/edge-pod.yaml')) as [{ spec: { containers: { volumeMounts: Mount[] }[] } }]
  const written = pod.spec.containers.flatMap(({ volumeMounts }) =>
    volumeMounts.filter(({ readOnly }) => readOnly !== true).map(({ mountPath }) => `${mountPath}/`),
  )
  for (const [file, folders] of [
    ['deploy/edge-pod.yaml', written],
    ['deploy/edge.service', [`/var/lib/${/^StateDirectory=(.+)$/m.exec(textOf('deploy/edge.service'))?.[1]}/`]],
    ['docs/operations.md', ['/var/lib/ake/']],
  ] as const) {
    const paths = credentialsIn(textOf(file))
    assert.ok(paths.length > 0, file)
    for (const path of paths)
      assert.ok(
        folders.some((folder) => path.startsWith(folder)),
        `${file}: ${path}`,
      )
  }
})
