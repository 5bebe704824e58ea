/** OpenAPI v2, one document for everything, put together part by part: in JSON, or in protobuf. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OpenApiDocument } from './openapidocument.ts'
import { openApiField, openApiMessage } from './openapiprotobuf.ts'
import { swaggerHead, swaggerParts, swaggerTail } from './openapiswagger.ts'

type Documents = Iterable<OpenApiDocument | undefined>

/** Some hundred milliseconds of work: others get their turn between the documents. */
async function eachPart(
  documents: Documents,
  take: (part: 'paths' | 'definitions', name: string, value: unknown) => void,
): Promise<void> {
  const seen = new Set<string>()
  for (const document of documents) {
    if (document === undefined) continue
    const { paths, definitions } = swaggerParts(document, seen)
    for (const [name, value] of paths) take('paths', name, value)
    for (const [name, value] of definitions) take('definitions', name, value)
    await nextTurn()
  }
}

export async function swaggerInJson(documents: Documents): Promise<Buffer> {
  const parts: Record<'paths' | 'definitions', string[]> = { paths: [], definitions: [] }
  await eachPart(documents, (part, name, value) => {
    parts[part].push(`${JSON.stringify(name)}:${JSON.stringify(value)}`)
  })
  const head = JSON.stringify(swaggerHead()).slice(0, -1)
  const tail = JSON.stringify(swaggerTail()).slice(1)
  return Buffer.from(
    `${head},"paths":{${parts.paths.join(',')}},"definitions":{${parts.definitions.join(',')}},${tail}`,
  )
}

export async function swaggerInProtobuf(documents: Documents): Promise<Buffer> {
  const parts: Record<'paths' | 'definitions', Buffer[]> = { paths: [], definitions: [] }
  await eachPart(documents, (part, name, value) => {
    parts[part].push(openApiMessage('v2', part === 'paths' ? 'Paths' : 'Definitions', { [name]: value }))
  })
  return Buffer.concat([
    openApiMessage('v2', 'Document', swaggerHead()),
    openApiField('v2', 'Document', 'paths', Buffer.concat(parts.paths)),
    openApiField('v2', 'Document', 'definitions', Buffer.concat(parts.definitions)),
    openApiMessage('v2', 'Document', swaggerTail()),
  ])
}
