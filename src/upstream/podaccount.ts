/**
 * What a pod is given to reach its API server: the address in its environment, and the files of its service account, whose
 * token is replaced while the pod runs.
 */
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { reasonOf } from '../base/fault.ts'
import { ofToken, type Profile } from './credential.ts'

export type PodAccount = {
  /** https://HOST:PORT */
  readonly server: string
  readonly tokenFile: string
  readonly caFile: string
}

const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Undefined where this is no pod of a cluster. */
export function podAccountIn(
  environment: Readonly<Record<string, string | undefined>>,
  folder = accountFolder,
): PodAccount | undefined {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = environment
  if (host === '' || port === '') return undefined
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
  return { server, tokenFile: join(folder, 'token'), caFile: join(folder, 'ca.crt') }
}

/** Rejects with a sentence where the API server could not be told from another. */
export async function readPodAccount({ server, tokenFile, caFile }: PodAccount): Promise<Profile> {
  const files = [tokenFile, caFile]
  const ca = await readFile(caFile, 'utf8').catch((error: unknown) => {
    throw new Error(
      `the authority ${caFile} of this pod cannot be read (${reasonOf(error)}): give it a service account and let its token be mounted, or give --kubeconfig`,
    )
  })
  if (!ca.includes('-----BEGIN ')) throw new Error(`the authority ${caFile} of this pod is no PEM: give --kubeconfig`)
  const token = await readFile(tokenFile, 'utf8').catch(() => '')
  const credential =
    token.trim() === ''
      ? { missing: `the token ${tokenFile} of this pod's service account cannot be read` }
      : ofToken(token.trim())
  return { server, trust: { ca, insecure: false }, credential, files }
}
