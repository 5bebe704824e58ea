/** `ake hub token`: a bootstrap token of the cluster, and the whole command with which a machine joins by it. */
import { randomInt } from 'node:crypto'
import { systemClock } from '../../base/clock.ts'
import { Unavailable, UsageError } from '../../base/fault.ts'
import { createLog } from '../../base/log.ts'
import { authoritiesOf } from '../../hub/state/authorities.ts'
import { KeptState } from '../../hub/state/keptstate.ts'
import { askJson } from '../../upstream/askjson.ts'
import type { DirectUpstream } from '../../upstream/direct.ts'
import { Unreachable } from '../../upstream/upstream.ts'
import { AnswerTooLarge } from '../../upstream/whole.ts'
import type { HubTokenConfig } from '../config.ts'
import { stateStoreAt, withHubUpstream } from './upstream.ts'

/** The group to which `deploy/hub.yaml` gives the right to join. */
const group = 'system:bootstrappers:ake'
const secrets = '/api/v1/namespaces/kube-system/secrets'
const answerMsMax = 10_000
const answerBytesMax = 256 * 1024
/** An id that is taken already is one in two billion. */
const triesMax = 3
/** The API server's clock is the one that counts, and it drops what ends in the past. */
const ttlMsMin = 60_000

/** Answers what to print. */
export async function hubToken(config: HubTokenConfig): Promise<string> {
  if (config.ttl < ttlMsMin) throw new UsageError('--ttl is too short to join within: give a minute at least')
  const log = createLog({ level: 'warn' })
  const clock = systemClock
  return await withHubUpstream({ ...config, log }, async (upstream) => {
    const store = stateStoreAt(config.state, upstream)
    const kept = await KeptState.open({ store, clock, log })
    const hubs = config.hub.length > 0 ? config.hub : [await outsideAddress(config, upstream)]
    const { token, id, until } = await makeToken(upstream, clock.now() + config.ttl)
    const hashes = authoritiesOf(kept.current).map(({ hash }) => hash)
    const words = [
      'ake join',
      ...hubs.map((hub) => `--hub ${hub}`),
      `--token ${token}`,
      ...hashes.map((hash) => `--ca-hash ${hash}`),
    ]
    const made = kept.isNew ? `# made a new hub's state in ${store.name}: no edge and no other hub knows it yet\n` : ''
    return `${made}# until ${until}, for any number of edges; ended before by: kubectl -n kube-system delete secret bootstrap-token-${id}\n${words.join(' ')}\n`
  })
}

type Made = { readonly token: string; readonly id: string; readonly until: string }

async function makeToken(upstream: DirectUpstream, endsAtMs: number): Promise<Made> {
  const until = `${new Date(endsAtMs).toISOString().slice(0, 19)}Z`
  for (let tries = 0; tries < triesMax; tries++) {
    const [id, secret] = [randomText(6), randomText(16)]
    const stringData = {
      'token-id': id,
      'token-secret': secret,
      expiration: until,
      'usage-bootstrap-authentication': 'true',
      'auth-extra-groups': group,
      description: 'ake hub token: machines join as edges with it',
    }
    const metadata = { name: `bootstrap-token-${id}`, namespace: 'kube-system' }
    const object = { apiVersion: 'v1', kind: 'Secret', type: 'bootstrap.kubernetes.io/token', metadata, stringData }
    const { status } = await ask(upstream, 'POST', secrets, object)
    if (status === 201) return { token: `${id}.${secret}`, id, until }
    if (status === 401 || status === 403) {
      throw new UsageError(
        `the kubeconfig's user may not create Secrets in kube-system (${status}): give --kubeconfig of one who may`,
      )
    }
    if (status !== 409) throw new Unavailable(`the API server answered ${status} to the Secret of the token: try again`)
  }
  throw new Unavailable('no free id was found for the token: try again')
}

/** As the load balancer of the hubs' Service has it. */
async function outsideAddress({ service }: HubTokenConfig, upstream: DirectUpstream): Promise<string> {
  const { namespace, name } = service
  const { status, object } = await ask(upstream, 'GET', `/api/v1/namespaces/${namespace}/services/${name}`)
  const { spec, status: found } = (status === 200 ? object : {}) as ServiceObject
  const ports = spec?.ports ?? []
  const port = (ports.find((one) => one.name === 'link') ?? ports[0])?.port
  const [at] = found?.loadBalancer?.ingress ?? []
  const host = at?.hostname ?? at?.ip
  if (host === undefined || port === undefined) {
    const why = status === 200 ? 'has no address outside of the cluster yet' : `cannot be read (${status})`
    throw new UsageError(`the Service ${namespace}/${name} ${why}: give --hub wss://HOST:PORT, as edges reach the hubs`)
  }
  return `wss://${host.includes(':') ? `[${host}]` : host}${port === 443 ? '' : `:${port}`}`
}

type ServiceObject = {
  readonly spec?: { readonly ports?: readonly { readonly name?: string; readonly port: number }[] }
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly hostname?: string; readonly ip?: string }[] }
  }
}

async function ask(
  upstream: DirectUpstream,
  method: string,
  path: string,
  content?: object,
): Promise<{ readonly status: number; readonly object: unknown }> {
  try {
    const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
    const { status, text } = await askJson(upstream, { method, path, content, ...limits })
    return { status, object: status < 300 ? (JSON.parse(text) as unknown) : {} }
  } catch (error) {
    if (!(error instanceof Unreachable) && !(error instanceof AnswerTooLarge)) throw error
    throw new Unavailable(`the API server cannot be asked: ${error.message}`)
  }
}

function randomText(length: number): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
  return Array.from({ length }, () => letters[randomInt(letters.length)]).join('')
}
