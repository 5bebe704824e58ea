/** A hub between an edge and its API server as an operator gets it: with the rights of `deploy/hub.yaml` and no more, and without trust. */
import { join } from 'node:path'
import { putBetween } from '../hubs.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import type { Oracle } from '../oracle.ts'
import { applyManifest } from './objects.ts'

type Between = Omit<Parameters<typeof putBetween>[0], 'rights'> & { readonly oracle: Oracle }

export async function hubBetween(parts: Between): ReturnType<typeof putBetween> {
  const { dir, oracle } = parts
  await applyManifest(oracle)
  const kubeconfig = join(dir, 'hub.kubeconfig')
  const token = await oracle.tokenFor('ake-system', 'ake-hub')
  await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, token })
  return await putBetween({ ...parts, rights: { kubeconfig } })
}
