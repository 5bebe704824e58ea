/** `ake serve`: the endpoint over a durable copy that is its own authority. The composition root: only wiring here. */
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { AuthorityCopy } from '../cache/authoritycopy.ts'
import { Discovery } from '../endpoint/documents/discovery.ts'
import { Health } from '../endpoint/documents/health.ts'
import { IssuerDocuments, issuerPaths } from '../endpoint/documents/issuer.ts'
import { Measures } from '../endpoint/documents/measures.ts'
import { BuiltDocuments } from '../endpoint/documents/openapi/built.ts'
import { OpenApi } from '../endpoint/documents/openapi/openapi.ts'
import { OwnCatalog } from '../endpoint/owncatalog.ts'
import { AuthorityAnswers } from '../endpoint/request/authority.ts'
import { Endpoint } from '../endpoint/request/pipeline.ts'
import { Server } from '../endpoint/sockets/server.ts'
import { builtinFacts } from '../kube/builtin.ts'
import { openAccountKey } from '../pki/accountkey.ts'
import { servingHosts } from '../pki/pki.ts'
import { Writer } from '../write/writer.ts'
import { followDefinitions, objectsOf } from './authority.ts'
import { bootstrap } from './bootstrap.ts'
import type { ServeConfig } from './config.ts'
import { damageOf, openStore, refuse, refuseMirrored } from './datafolder.ts'
import { readKeys } from './encryptionkey.ts'
import { endInOrder } from './ending.ts'
import { lockFolder } from './lockfile.ts'
import { connectionsHere } from './openfiles.ts'
import { ownIdentity } from './ownidentity.ts'
import { beginRoles } from './roleaggregation.ts'
import { Serving } from './serving.ts'
import { buildInfo } from './version.ts'

/** Of the process: a hash names the same bytes for every authority in it. */
const built = new BuiltDocuments()

type Running = { readonly log: Log; readonly signal: AbortSignal; ready(url: string): void }

export async function serve(config: ServeConfig, { log, signal, ready }: Running): Promise<void> {
  const keys = await readKeys(config.encryptionKey, { environment: process.env, log })
  const unlock = await lockFolder(config.data)
  const clock = systemClock
  const store = openStore({ ...config, keys, log })
  try {
    const resources = new OwnCatalog()
    const opening = AuthorityCopy.open({
      store,
      clock,
      log,
      planOf: (interest) => resources.planOf(interest),
      aging: { ageMs: config.historyAge },
    })
    const hosts = () => servingHosts(config.listen.map(({ host }) => host))
    const [copy, serving, key] = await Promise.all([
      opening.catch((error: unknown) => refuse(error, config.data)),
      Serving.open({ data: config.data, hosts, clock, log }),
      openAccountKey(join(config.data, 'pki')),
      refuseMirrored(store).catch((error: unknown) => refuse(error, config.data)),
    ])
    followDefinitions(copy, resources)
    const { authentication, authorization, whose, writing } = ownIdentity({ ...config, copy, key, clock })
    const writer = new Writer({ ...writing, objectsOf: objectsOf(copy, resources), catalog: resources, clock, log })
    await bootstrap(writer, resources)
    const hasRoles = config.authorization === 'rbac'
    const aggregation = hasRoles ? await beginRoles({ copy, resources, writer, clock, log }) : undefined

    const measures = new Measures({ copy, catalog: resources, store, more: () => [buildInfo()] })
    const { pki } = serving
    const begun = Promise.withResolvers<Endpoint>()
    // A client that comes back as soon as the port is open waits for the rest, which needs to know that port.
    let handle: Endpoint['handle'] = async (request) => (await begun.promise).handle(request)
    const server = new Server({
      handle: (request) => handle(request),
      whose,
      compress: config.compress,
      addresses: config.listen,
      tls: { ...pki.serving, clientCa: pki.ca },
      traffic: measures.traffic,
      log,
      limits: { connectionsMax: connectionsHere() },
    })
    const url = await serving.announce(await server.listen())
    const serverAddress = new URL(url).host
    const answering = new AuthorityAnswers({
      copy,
      catalog: resources,
      writer,
      authentication,
      documents: [
        new Health({
          version: builtinFacts().version,
          checks: [
            { name: 'store', ready: true, run: () => (copy.healthy ? undefined : 'the disk refuses writes') },
            // It serves all the same; but what it accepted and no longer has is for the operator to know.
            { name: 'data', ready: true, run: () => damageOf(copy, store).join('; ') || undefined },
          ],
        }),
        new Discovery({ resources, serverAddress, paths: documentPaths }),
        new OpenApi({ resources, clock, built }),
        new IssuerDocuments(writing.issuer.documents(serverAddress)),
        measures,
      ],
      clock,
    })
    const endpoint = new Endpoint({ authentication, authorization, catalog: resources, answering, measures, log })
    handle = (request) => endpoint.handle(request)
    begun.resolve(endpoint)
    log.info('serve.ready', { url, version: copy.progress.version })
    ready(url)
    await Promise.all([
      copy.run(signal),
      writer.sweeper.run(signal),
      serving.run(server, signal),
      aggregation?.run(signal),
      endInOrder(signal, server),
    ])
    log.info('serve.ended')
  } finally {
    await store.close()
    unlock()
  }
}

const documentPaths = [
  ...issuerPaths,
  '/healthz',
  '/livez',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/readyz',
  '/version',
]
