/**
 * `ake status`: asks the edge that runs on a folder how it fares, as its administrator, and prints the answer for people
 * or as it came. What the edge tells is `StatusDocument`, served on /ake/status.
 */
import { request } from 'node:https'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { reasonOf, Unavailable, UsageError } from '../base/fault.ts'
import { readPrivateFile } from '../pki/privatefile.ts'
import type { StatusConfig } from './config.ts'
import type { StatusDocument } from './statusdocument.ts'
import { statusText } from './statustext.ts'

/** An edge answers from memory: one that takes longer than this is stuck. */
const answerMsMax = 5_000
/** Some hundred bytes for each interest: far more than an edge can hold. */
const answerBytesMax = 16 * 1024 * 1024

/** What to print. */
export async function status({ data, output }: StatusConfig, clock: Clock): Promise<string> {
  const document = await statusIn(data)
  return output === 'json' ? `${JSON.stringify(document, null, 2)}\n` : statusText(document, clock.now())
}

/** What the edge that runs on a folder tells. */
export async function statusIn(data: string): Promise<StatusDocument> {
  const path = join(data, 'admin.kubeconfig')
  const text = await readPrivateFile(path)
  if (text === undefined) {
    throw new UsageError(`${data} has no admin.kubeconfig, so no ake has run there: give its folder with --data`)
  }
  const access = await accessIn(text, path)
  const answer = await ask(access, data)
  if (answer.code === 404) {
    throw new Unavailable(`the ake on ${data} is not an edge: only "ake edge" has a status to tell`)
  }
  if (answer.code !== 200) {
    throw new Unavailable(`${access.server} refuses to tell its status (${answer.code}): another ake may listen there`)
  }
  return parsed(answer.text, access.server)
}

function parsed(text: string, server: string): StatusDocument {
  try {
    return JSON.parse(text) as StatusDocument
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

function ask({ server, ...credentials }: ServerAccess, data: string): Promise<{ code: number; text: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(answerMsMax)
    const asked = request(`${server}/ake/status`, { ...credentials, signal, agent: false }, (answer) => {
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
      const stopped = error.code === 'ECONNREFUSED'
      const why = signal.aborted ? `nothing within ${answerMsMax / 1000} s` : reasonOf(error)
      reject(
        new Unavailable(
          stopped
            ? `no ake runs on ${data}: start it with "ake edge"`
            : `${server} gives no answer (${why}): see its log`,
        ),
      )
    }
    asked.on('error', fail)
    asked.end()
  })
}
