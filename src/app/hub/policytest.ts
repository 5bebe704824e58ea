/** `ake hub policy test`: which rule decides, by what stands in the cluster, read with the operator's own kubeconfig. */
import { UsageError } from '../../base/fault.ts'
import { createLog } from '../../base/log.ts'
import { builtinFacts } from '../../kube/builtin.ts'
import { answerTo, type PolicyQuestion, summaryOf } from '../../policy/explaining.ts'
import type { PolicedNode } from '../../policy/nodes.ts'
import { policyResource } from '../../policy/policy.ts'
import { type ReadPolicy, readPolicy } from '../../policy/reading.ts'
import { applied } from '../../policy/rules.ts'
import { askJson } from '../../upstream/askjson.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { HubPolicyTestConfig } from '../config.ts'
import type { PolicedObject } from '../optionkinds.ts'
import { withHubUpstream } from './upstream.ts'

const { group, version, resource } = policyResource
const collection = `/apis/${group}/${version}/${resource}`
const answerMsMax = 10_000
/** Hundreds of policies. */
const answerBytesMax = 16 * 1024 * 1024

type Asked = Pick<Upstream, 'ask'>

/** Answers what to print. */
export async function hubPolicyTest(config: HubPolicyTestConfig): Promise<string> {
  const { node: name, speakFor, group: groups, interest, never } = config
  if (name === undefined) throw new UsageError('give the node of the edge that is asked about: --node')
  const questions: PolicyQuestion[] = [
    ...(speakFor === undefined ? [] : [{ about: 'caller', name: speakFor, groups } as const]),
    ...(interest === undefined ? [] : [{ about: 'interest', of: policedBy(interest) } as const]),
    ...(never === undefined ? [] : [{ about: 'never', of: policedBy(never) } as const]),
  ]
  if (groups.length > 0 && speakFor === undefined)
    throw new UsageError('--group is of the caller that --speak-for names')
  return await withHubUpstream({ ...config, log: createLog({ level: 'error' }) }, async (upstream) => {
    const policies = await policiesOf(upstream)
    const node = await nodeOf(upstream, name)
    return `${report({ policies, node, questions }).join('\n')}\n`
  })
}

type Reported = {
  readonly policies: readonly ReadPolicy[]
  readonly node: PolicedNode & { readonly exists: boolean }
  readonly questions: readonly PolicyQuestion[]
}

function report({ policies, node, questions }: Reported): string[] {
  const those = applied(policies, node)
  const list = (names: readonly string[]) => (names.length === 0 ? 'none' : names.join(', '))
  const lines = [
    `node ${node.name}${node.exists ? '' : ' (there is no such Node: what goes by labels forbids, and does not allow)'}`,
    `policies for it: ${list(those.map(({ policy }) => policy.name))} (of ${policies.length})`,
  ]
  for (const { name, faults } of policies)
    if (faults.length > 0) lines.push(`policy/${name} allows nothing: ${faults.join('; ')}`)
  for (const question of questions) {
    const { yes, by } = answerTo(those, question)
    lines.push(`${textOf(question)}: ${yes ? 'yes' : 'no'}, ${yes || by.startsWith('policy/') ? `by ${by}` : by}`)
    if (!yes && question.about === 'interest' && !by.startsWith('policy/'))
      lines.push('  it has it all the same if its node may read it, or the token of a caller proves that')
  }
  return questions.length === 0 ? [...lines, ...summaryOf(those)] : lines
}

function textOf(question: PolicyQuestion): string {
  if (question.about === 'caller') {
    const groups = question.groups.length === 0 ? '' : ` (groups ${question.groups.join(', ')})`
    return `speaks for ${question.name}${groups}`
  }
  const { group: of, resource: plural, namespace } = question.of
  const name = question.about === 'interest' && question.of.name !== '' ? `/${question.of.name}` : ''
  const what = `${plural}${of === '' ? '' : `.${of}`}${namespace === '' ? '' : `@${namespace}`}${name}`
  return question.about === 'interest' ? `may mirror ${what}` : `never keeps ${what}`
}

/** Kubernetes' own resources are known by their names; of others it is not known here whether they have namespaces. */
function policedBy({ resource: plural, group: given, namespace, name }: PolicedObject) {
  const own = builtinFacts().resources.filter((one) => one.resource === plural)
  const known =
    given === undefined ? (own.find((one) => one.group === '') ?? own[0]) : own.find((one) => one.group === given)
  if (given === undefined && known === undefined)
    throw new UsageError(
      `${plural} is no resource of Kubernetes itself: write it with its group, as ${plural}.example.com`,
    )
  if (namespace !== '' && known?.namespaced === false) throw new UsageError(`${plural} are in no namespace`)
  return {
    resource: plural,
    group: given ?? known?.group ?? '',
    namespace,
    name,
    isNamespaced: known?.namespaced ?? true,
  }
}

async function policiesOf(upstream: Asked): Promise<ReadPolicy[]> {
  const { status, object } = await got(upstream, collection)
  // Without the definition there is no policy, as for a hub.
  if (status === 404) return []
  const items = (object as { readonly items?: readonly object[] }).items ?? []
  return items.map((one) => readPolicy(JSON.stringify(one)))
}

async function nodeOf(upstream: Asked, name: string): Promise<Reported['node']> {
  const { status, object } = await got(upstream, `/api/v1/nodes/${name}`)
  const { metadata } = object as { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } }
  return {
    name,
    exists: status === 200,
    labels: status === 200 ? new Map(Object.entries(metadata?.labels ?? {})) : ('unknown' as const),
  }
}

async function got(upstream: Asked, path: string): Promise<{ readonly status: number; readonly object: unknown }> {
  const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
  const { status, text } = await askJson(upstream, { method: 'GET', path, ...limits })
  if (status === 200) return { status, object: JSON.parse(text) as unknown }
  if (status === 404) return { status, object: {} }
  const message = /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? ''
  throw new UsageError(
    `the API server refuses (${status}): ${message}. The kubeconfig's user has to list edgepolicies and get nodes`,
  )
}
