/** `ake serve`: the endpoint over a durable copy that is its own authority. The composition root: only wiring here. */
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { AuthorityCopy } from '../cache/authoritycopy.ts'
import { Discovery } from '../endpoint/documents/discovery.ts'
import { Health } from '../endpoint/documents/health.ts'
import { Measures } from '../endpoint/documents/measures.ts'
import { OpenApi } from '../endpoint/documents/openapi/openapi.ts'
import { OwnAccess } from '../endpoint/ownaccess.ts'
import { OwnCatalog } from '../endpoint/owncatalog.ts'
import { AuthorityAnswers } from '../endpoint/request/authority.ts'
import { Endpoint } from '../endpoint/request/pipeline.ts'
import { Server } from '../endpoint/sockets/server.ts'
import { builtinFacts } from '../kube/builtin.ts'
import { serverUrl, writeKubeconfig } from '../pki/kubeconfig.ts'
import { openPki } from '../pki/pki.ts'
import { Writer } from '../write/writer.ts'
import { followDefinitions, objectsOf } from './authority.ts'
import { bootstrap } from './bootstrap.ts'
import type { ServeConfig } from './config.ts'
import { damageOf, openStore, refuse, refuseMirrored } from './datafolder.ts'
import { endInOrder } from './ending.ts'
import { lockFolder } from './lockfile.ts'
import { connectionsHere } from './openfiles.ts'

type Running = { readonly log: Log; readonly signal: AbortSignal; ready(url: string): void }

export async function serve(config: ServeConfig, { log, signal, ready }: Running): Promise<void> {
  const unlock = await lockFolder(config.data)
  const clock = systemClock
  const store = openStore({ ...config, log })
  try {
    const resources = new OwnCatalog()
    const opening = AuthorityCopy.open({
      store,
      clock,
      log,
      planOf: (interest) => resources.planOf(interest),
      aging: { ageMs: config.historyAge },
    })
    const [copy, pki] = await Promise.all([
      opening.catch((error: unknown) => refuse(error, config.data)),
      openPki({ folder: join(config.data, 'pki'), host: config.listen.host, now: clock.now() }),
      refuseMirrored(store).catch((error: unknown) => refuse(error, config.data)),
    ])
    followDefinitions(copy, resources)
    const writer = new Writer({ objectsOf: objectsOf(copy, resources), catalog: resources, clock, log })
    await bootstrap(writer, resources)

    const measures = new Measures({ copy, store })
    const { host } = config.listen
    let handle: Endpoint['handle'] | undefined
    const server = new Server({
      handle: (request) => (handle as Endpoint['handle'])(request),
      compress: config.compress,
      address: config.listen,
      tls: { ...pki.serving, clientCa: pki.ca },
      traffic: measures.traffic,
      log,
      limits: { connectionsMax: connectionsHere() },
    })
    const port = await server.listen()
    const access = new OwnAccess()
    const answering = new AuthorityAnswers({
      copy,
      catalog: resources,
      writer,
      authentication: access,
      documents: [
        new Health({
          version: builtinFacts().version,
          checks: [
            { name: 'store', ready: true, run: () => (copy.healthy ? undefined : 'the disk refuses writes') },
            // It serves all the same; but what it accepted and no longer has is for the operator to know.
            { name: 'data', ready: true, run: () => damageOf(copy, store).join('; ') || undefined },
          ],
        }),
        new Discovery({ resources, serverAddress: `${host}:${port}`, paths: documentPaths }),
        new OpenApi({ resources, clock }),
        measures,
      ],
      clock,
    })
    const asked = { authentication: access, authorization: access, catalog: resources }
    const endpoint = new Endpoint({ ...asked, answering, measures, log })
    handle = (request) => endpoint.handle(request)
    const url = serverUrl(host, port)
    await writeKubeconfig(join(config.data, 'admin.kubeconfig'), url, pki)
    log.info('serve.ready', { url, version: copy.progress.version })
    ready(url)
    await Promise.all([copy.run(signal), writer.sweeper.run(signal), endInOrder(signal, server)])
    log.info('serve.ended')
  } finally {
    await store.close()
    unlock()
  }
}

const documentPaths = ['/healthz', '/livez', '/metrics', '/openapi/v2', '/openapi/v3', '/readyz', '/version']
