/**
 * `ake status`: asks the edge that runs on a folder how it fares, as its administrator, or a hub, and prints the answer for
 * people or as it came. What they tell is `StatusDocument` and `HubStatusDocument`, served on /ake/status.
 */
import { request as requestSecurely } from 'node:https'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { reasonOf, Unavailable, UsageError } from '../base/fault.ts'
import { request as requestPlainly } from '../base/http.ts'
import { statusPath } from '../endpoint/ownpaths.ts'
import { readPrivateFile } from '../pki/privatefile.ts'
import type { HubEdgesConfig, StatusConfig } from './config.ts'
import type { HubStatusDocument } from './hub/status.ts'
import { hubEdgesText, hubStatusText } from './hub/statustext.ts'
import type { StatusDocument } from './statusdocument.ts'
import { statusText } from './statustext.ts'

/** An edge answers from memory: one that takes longer than this is stuck. */
const answerMsMax = 5_000
/** Some hundred bytes for each interest: far more than an edge can hold. */
const answerBytesMax = 16 * 1024 * 1024

type Asked = Pick<StatusConfig, 'data' | 'output'> & Partial<Pick<StatusConfig, 'health'>>

/** What to print. */
export async function status({ data, health, output }: Asked, clock: Clock): Promise<string> {
  if (health !== undefined) return await hubStatus(health, output, clock)
  const document = await statusIn(data)
  return output === 'json' ? `${JSON.stringify(document, null, 2)}\n` : statusText(document, clock.now())
}

async function hubStatus(hub: string, output: StatusConfig['output'], clock: Clock): Promise<string> {
  const document = await hubStatusAt(hub)
  return output === 'json' ? `${JSON.stringify(document, null, 2)}\n` : hubStatusText(document, clock.now())
}

/** `ake hub edges`: what to print. */
export async function hubEdges({ health, output }: HubEdgesConfig, clock: Clock): Promise<string> {
  const { edges, others = [], hub, ...document } = await hubStatusAt(health)
  return output === 'json'
    ? `${JSON.stringify({ hub, edges, others }, null, 2)}\n`
    : hubEdgesText({ ...document, hub, edges, others }, clock.now())
}

async function hubStatusAt(hub: string): Promise<HubStatusDocument> {
  const answer = await ask(`${hub}${statusPath}`, {}, () => `no hub listens at ${hub}: give its --health-listen`)
  if (answer.code !== 200) throw new Unavailable(`${hub} has no status to tell (${answer.code}): it may be no hub`)
  return parsed<HubStatusDocument>(answer.text, hub)
}

/** What the edge that runs on a folder tells. */
export async function statusIn(data: string): Promise<StatusDocument> {
  const path = join(data, 'admin.kubeconfig')
  const text = await readPrivateFile(path)
  if (text === undefined) {
    throw new UsageError(`${data} has no admin.kubeconfig, so no ake has run there: give its folder with --data`)
  }
  const access = await accessIn(text, path)
  const { server, ...credentials } = access
  const answer = await ask(
    `${server}${statusPath}`,
    credentials,
    () => `no ake runs on ${data}: start it with "ake edge"`,
  )
  if (answer.code === 404) {
    throw new Unavailable(`the ake on ${data} is not an edge: only "ake edge" has a status to tell`)
  }
  if (answer.code !== 200) {
    throw new Unavailable(`${access.server} refuses to tell its status (${answer.code}): another ake may listen there`)
  }
  return parsed<StatusDocument>(answer.text, access.server)
}

function parsed<Document>(text: string, server: string): Document {
  try {
    return JSON.parse(text) as Document
  } catch {
    throw new Unavailable(`${server} gives no answer that can be read: another server may listen there`)
  }
}

type ServerAccess = { readonly server: string; readonly ca: string; readonly cert: string; readonly key: string }

async function accessIn(text: string, path: string): Promise<ServerAccess> {
  const { load } = await import('js-yaml')
  try {
    // biome-ignore lint/suspicious/noExplicitAny: whatever is missing is said below
    const { clusters, users } = load(text) as any
    const { server, 'certificate-authority-data': ca } = clusters[0].cluster
    const { 'client-certificate-data': cert, 'client-key-data': key } = users[0].user
    const [caText, certText, keyText] = [ca, cert, key].map((one) => Buffer.from(one, 'base64').toString())
    return { server: new URL(server).origin, ca: caText as string, cert: certText as string, key: keyText as string }
  } catch {
    throw new UsageError(`${path} is not as ake wrote it: restart the ake of that folder, which writes it anew`)
  }
}

/** `stopped`: what is said where no process listens. */
function ask(
  url: string,
  credentials: Partial<Omit<ServerAccess, 'server'>>,
  stopped: () => string,
): Promise<{ code: number; text: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(answerMsMax)
    const request = url.startsWith('https:') ? requestSecurely : requestPlainly
    const asked = request(url, { ...credentials, signal, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
        if (text.length > answerBytesMax) answer.destroy(new Error('the answer is too long'))
      })
      answer.on('end', () => resolve({ code: answer.statusCode ?? 0, text }))
      answer.on('error', fail)
    })
    const fail = (error: NodeJS.ErrnoException) => {
      const why = signal.aborted ? `nothing within ${answerMsMax / 1000} s` : reasonOf(error)
      const { origin } = new URL(url)
      const isStopped = error.code === 'ECONNREFUSED'
      reject(new Unavailable(isStopped ? stopped() : `${origin} gives no answer (${why}): see its log`))
    }
    asked.on('error', fail)
    asked.end()
  })
}
