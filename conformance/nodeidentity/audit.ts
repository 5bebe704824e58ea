/** Who asked the API server for what, by its own audit: in whose name an edge passes requests on is nobody else's to tell. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

type Audited = {
  readonly verb: string
  readonly user: { readonly username: string }
  readonly impersonatedUser?: { readonly username: string }
  readonly objectRef?: { readonly resource?: string; readonly name?: string; readonly subresource?: string }
  readonly responseStatus?: { readonly code?: number }
}

export type AuditedWrite = {
  /** Whose credential came. */
  readonly user: string
  /** In whose name it was done, where that is somebody else. */
  readonly as?: string
  readonly what: string
  readonly name: string
  readonly code: number
}

const logFile = (dir: string) => join(dir, 'audit.jsonl')

/** Arguments for an API server whose folder this is. */
export async function auditArguments(dir: string): Promise<string[]> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const policy = join(dir, 'audit-policy.json')
  const verbs = ['create', 'update', 'patch', 'delete', 'deletecollection']
  const rules = [{ level: 'Metadata', verbs, omitStages: ['RequestReceived'] }, { level: 'None' }]
  await writeFile(policy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules }))
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${logFile(dir)}`]
}

/** All writes so far; reviews write nothing. */
export async function auditedWrites(dir: string): Promise<AuditedWrite[]> {
  const found: AuditedWrite[] = []
  for (const line of (await readFile(logFile(dir), 'utf8')).split('\n')) {
    if (line === '') continue
    const { verb, user, impersonatedUser, objectRef = {}, responseStatus } = JSON.parse(line) as Audited
    const { resource = '', name = '', subresource } = objectRef
    if (resource.endsWith('reviews')) continue
    const what = `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`
    const as = impersonatedUser === undefined ? {} : { as: impersonatedUser.username }
    found.push({ user: user.username, ...as, what, name, code: responseStatus?.code ?? 0 })
  }
  return found
}
