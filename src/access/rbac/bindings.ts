/** A RoleBinding or ClusterRoleBinding as it is read: the role it names, and who gets it. */
import { quoted } from '../../kube/json/gotext.ts'

/** A subject of a binding, by what a caller that it means has: a user name, or a group. */
export type BoundSubject = {
  readonly kind: 'User' | 'Group' | 'ServiceAccount'
  readonly id: string
  /** Of a service account; otherwise ''. */
  readonly namespace: string
}

type ReadBinding = {
  readonly roleKind: string
  readonly roleName: string
  readonly subjects: readonly BoundSubject[]
}

const accountPrefix = 'system:serviceaccount:'

/** `namespace` is the binding's own, '' of a ClusterRoleBinding. API groups are not looked at, as by kube-apiserver. */
export function readBinding(object: Readonly<Record<string, unknown>>, namespace: string): ReadBinding {
  const role = object.roleRef as { kind?: unknown; name?: unknown } | undefined
  const subjects: unknown[] = Array.isArray(object.subjects) ? object.subjects : []
  return {
    roleKind: text(role?.kind),
    roleName: text(role?.name),
    subjects: subjects.flatMap((one) => readSubject(one as Readonly<Record<string, unknown>> | null, namespace)),
  }
}

/** None where it can mean no caller. An account without a namespace is one of the binding's. */
function readSubject(subject: Readonly<Record<string, unknown>> | null, own: string): BoundSubject[] {
  const kind = text(subject?.kind)
  const name = text(subject?.name)
  if (kind === 'User' || kind === 'Group') return [{ kind, id: name, namespace: '' }]
  const namespace = text(subject?.namespace) || own
  if (kind !== 'ServiceAccount' || namespace === '') return []
  return [{ kind, id: `${accountPrefix}${namespace}:${name}`, namespace }]
}

/** As reasons name it: an account by its name first. */
export function describe({ kind, id, namespace }: BoundSubject): string {
  if (kind !== 'ServiceAccount') return `${kind} ${quoted(id)}`
  return `${kind} ${quoted(`${id.slice(accountPrefix.length + namespace.length + 1)}/${namespace}`)}`
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
