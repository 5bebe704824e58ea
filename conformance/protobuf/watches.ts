/**
 * A watch of a real kube-apiserver in both forms: each event in protobuf is, read by us, the event in JSON, and the event in
 * JSON, written by us, the one in protobuf. All types of events: also the bookmarks of a WatchList, and the error at the end.
 */

import { FrameReader } from '../../src/kube/frames.ts'
import { Enveloping } from '../../src/kube/protobuf/enveloping.ts'
import { decodeMessage, encodeMessage, messageOf, readEnvelope } from '../../src/kube/protobuf/protobuf.ts'
import { ask, type Oracle } from '../oracle.ts'
import { protobufType, Wire } from './ask.ts'
import { differ, type Found } from './golden.ts'

const namespace = 'frames'
const configmaps = `/api/v1/namespaces/${namespace}/configmaps`
const metadataOnly = ';as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

export async function proveWatches(oracle: Oracle, found: Found): Promise<void> {
  let wire = new Wire(oracle)
  const types = new Set<string>()
  const pairs = async (path: string, count: number, parameters = '', meanwhile?: () => Promise<void>) => {
    const [json, protobuf] = await Promise.all([
      wire.watch(path, `application/json${parameters}`, count, meanwhile),
      wire.watch(path, `${protobufType}${parameters}`, count),
    ])
    for (const [at, frame] of json.entries()) {
      found.count++
      types.add(proveFrame(found, `event ${at} of ${path}${parameters}`, frame, protobuf[at] as Buffer))
    }
  }
  const change = async (method: string, path: string, body?: object) => {
    const headers: Record<string, string> = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {}
    const { status, body: told } = await ask(oracle, path, { method, headers, body })
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${told}`)
  }
  const list = 'watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
  try {
    await change('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
    for (const name of ['a', 'b']) {
      await change('POST', configmaps, { metadata: { name, labels: { x: 'y' } }, data: { key: `ü<${name}>` } })
    }
    for (const parameters of ['', metadataOnly]) {
      // What is there, and a bookmark behind it.
      await pairs(`${configmaps}?${list}`, 3, parameters)
      const name = parameters === '' ? 'whole' : 'metadata'
      const { metadata } = JSON.parse((await ask(oracle, configmaps)).body) as { metadata: { resourceVersion: string } }
      await pairs(`${configmaps}?watch=1&resourceVersion=${metadata.resourceVersion}`, 3, parameters, async () => {
        await change('POST', configmaps, { metadata: { name }, binaryData: { key: 'AAEC' } })
        await change('PATCH', `${configmaps}/${name}`, { metadata: { labels: { changed: 'yes' } } })
        await change('DELETE', `${configmaps}/${name}`)
      })
    }
    for (const path of [
      '/api/v1/namespaces',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      '/apis/apiregistration.k8s.io/v1/apiservices',
    ]) {
      const { items } = JSON.parse((await ask(oracle, path)).body) as { items: unknown[] }
      await pairs(`${path}?${list}`, items.length + 1)
    }
    wire.close()
    await oracle.expire()
    wire = new Wire(oracle)
    await pairs(`${configmaps}?watch=1&resourceVersion=1`, 1)
  } finally {
    wire.close()
  }
  const missing = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'].filter((type) => !types.has(type))
  if (missing.length > 0) found.faults.push(`no event of the type ${missing.join(', ')} was seen`)
}

/** Answers the event's type. */
function proveFrame(found: Found, what: string, line: Buffer, frame: Buffer): string {
  const [event] = new FrameReader().push(line)
  if (event === undefined) throw new Error(`${what}: no event`)
  const { kind, apiVersion } = JSON.parse(event.object.toString()) as { kind: string; apiVersion: string }
  const message = messageOf(apiVersion, kind)
  if (message === undefined) throw new Error(`${what}: no message of ${apiVersion} ${kind}`)
  const written = new Enveloping({ apiVersion, kind }).frame(event.type, encodeMessage(message, event.object))
  differ(found, `${what} written`, frame, written.subarray(4))
  // Type and extension, each behind its tag and length, then the envelope behind its own.
  const inner = frame.subarray(frame.indexOf('k8s\0'))
  differ(found, `${what} read`, event.object, decodeMessage(message, readEnvelope(inner).raw, { apiVersion, kind }))
  return event.type
}
