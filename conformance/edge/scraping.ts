/** Around an edge that Prometheus scrapes: whom it scrapes as, with what configuration, and what is asked of the edge meanwhile. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { load } from 'js-yaml'
import type { Ake } from '../ake.ts'
import { Seat } from '../asking.ts'
import type { Oracle } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'

const root = join(import.meta.dirname, '..', '..')
export const rulesFile = join(root, 'deploy', 'prometheus-rules.yaml')

const namespace = 'edge-prometheus'
const maps = '/api/v1/namespaces/default/configmaps'
/** So that a rate sees requests of every kind grow. */
const askEveryMs = 500
/** In place of minutes. */
const shortFor = '3s'

type ScrapeDocument = {
  readonly rule_files: readonly string[]
  readonly scrape_configs: readonly object[]
}

/** Reads, writes that are passed through or refused, and what nothing is held of. Answers do not matter, the edge may be away. */
export async function keepAsking(edge: () => Ake, signal: AbortSignal): Promise<void> {
  const asked = [
    ['GET', maps],
    ['PUT', `${maps}/${namespace}`],
    ['GET', '/api/v1/namespaces/default/podtemplates/none'],
  ] as const
  while (!signal.aborted) {
    const administrator = new Seat(edge(), edge())
    for (const [method, path] of asked) {
      const body = method === 'PUT' ? { body: { metadata: { name: namespace } } } : {}
      await administrator.ask(path, { method, ...body }).catch(() => undefined)
    }
    administrator.close()
    await pause(askEveryMs, undefined, { signal }).catch(() => undefined)
  }
}

/** The account of docs/getting-started.md, with the right to /metrics and no other. */
export async function scraperToken(oracle: Oracle): Promise<string> {
  const make = creatorOf(oracle)
  await make('/api/v1/namespaces', { metadata: { name: namespace } })
  await make(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'prometheus' } })
  await make('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:monitoring' },
    subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace }],
  })
  return await oracle.tokenFor(namespace, 'prometheus')
}

/** As docs/operations.md has it, with the files and the address of here, a quicker pace, and rules that wait for seconds. */
export async function scrapeConfig(dir: string, edge: Ake, token: string): Promise<object> {
  const file = async (name: string, text: string) => {
    const path = join(dir, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }
  const page = await readFile(join(root, 'docs', 'operations.md'), 'utf8')
  const block = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].find(([, text]) => text?.includes('job_name: ake'))?.[1]
  if (block === undefined) throw new Error('docs/operations.md has no scrape configuration')
  const { scrape_configs: jobs, ...rest } = load(block) as ScrapeDocument
  const rules = (await readFile(rulesFile, 'utf8')).replace(/^( +for: ).*$/gm, `$1${shortFor}`)
  const job = {
    ...jobs[0],
    tls_config: { ca_file: await file('scrape-ca.crt', edge.ca) },
    authorization: { credentials_file: await file('scrape.token', token) },
    static_configs: [{ targets: [`127.0.0.1:${edge.port}`] }],
  }
  return {
    ...rest,
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [await file('rules.yaml', rules)],
    scrape_configs: [job],
  }
}
