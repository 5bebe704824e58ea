/** OpenAPI v2, one document for everything, put together part by part: in JSON, or in protobuf. */
import { pieceMsMax, turns } from '../../../base/turns.ts'
import type { OpenApiDocument } from './document.ts'
import { openApiField, openApiMessage } from './protobuf.ts'
import { swaggerHead, swaggerParts, swaggerTail } from './swagger.ts'

type OpenApiDocuments = Iterable<OpenApiDocument | undefined>

/** Seconds of work where there are a thousand definitions: others get their turn every few milliseconds. */
async function eachPart(
  documents: OpenApiDocuments,
  steady: () => number,
  take: (part: 'paths' | 'definitions', name: string, value: unknown) => void,
): Promise<void> {
  const seen = new Set<string>()
  let untilMs = steady() + pieceMsMax
  const rest = async () => {
    await turns.take()
    untilMs = steady() + pieceMsMax
  }
  for (const document of documents) {
    if (document === undefined) continue
    const { paths, definitions } = swaggerParts(document, seen)
    for (const [part, members] of [['paths', paths] as const, ['definitions', definitions] as const]) {
      for (const [name, value] of members) {
        take(part, name, value)
        if (steady() >= untilMs) await rest()
      }
    }
  }
}

export async function swaggerInJson(documents: OpenApiDocuments, steady: () => number): Promise<Buffer> {
  const parts: Record<'paths' | 'definitions', Buffer[]> = { paths: [], definitions: [] }
  await eachPart(documents, steady, (part, name, value) => {
    const comma = parts[part].length === 0 ? '' : ','
    parts[part].push(Buffer.from(`${comma}${JSON.stringify(name)}:${JSON.stringify(value)}`))
  })
  const head = Buffer.from(`${JSON.stringify(swaggerHead()).slice(0, -1)},"paths":{`)
  const tail = Buffer.from(`},${JSON.stringify(swaggerTail()).slice(1)}`)
  return Buffer.concat([head, ...parts.paths, Buffer.from('},"definitions":{'), ...parts.definitions, tail])
}

export async function swaggerInProtobuf(documents: OpenApiDocuments, steady: () => number): Promise<Buffer> {
  const parts: Record<'paths' | 'definitions', Buffer[]> = { paths: [], definitions: [] }
  await eachPart(documents, steady, (part, name, value) => {
    parts[part].push(openApiMessage('v2', part === 'paths' ? 'Paths' : 'Definitions', { [name]: value }))
  })
  return Buffer.concat([
    openApiMessage('v2', 'Document', swaggerHead()),
    openApiField('v2', 'Document', 'paths', Buffer.concat(parts.paths)),
    openApiField('v2', 'Document', 'definitions', Buffer.concat(parts.definitions)),
    openApiMessage('v2', 'Document', swaggerTail()),
  ])
}
