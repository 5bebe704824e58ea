/**
 * The messages in which OpenAPI documents travel in protobuf (gnostic's openapi.v2 and openapi.v3): per message its members
 * with number and type, as far as documents of Kubernetes use them. In a type, `s` is a string, `b` a boolean, `l` an
 * integer, `d` a double, `a` any value as YAML, `[` stands before what repeats; anything else is a message.
 *
 * A message is told otherwise where its members have names of their own: `*:1:Schema` is one entry of field 1 for each
 * member, by its name, and `x-` the same for extensions. Of `|` alternatives `choose` in `protobuf.ts` takes one.
 */

const v2 = `
Document swagger:1:s info:2:Info host:3:s basePath:4:s schemes:5:[s consumes:6:[s produces:7:[s paths:8:Paths definitions:9:Definitions parameters:10:ParameterDefinitions security:12:[SecurityRequirement securityDefinitions:13:SecurityDefinitions x-:16:a
Info title:1:s version:2:s description:3:s x-:7:a
Paths *:2:PathItem x-:1:a
PathItem $ref:1:s get:2:Operation put:3:Operation post:4:Operation delete:5:Operation options:6:Operation head:7:Operation patch:8:Operation parameters:9:[ParametersItem x-:10:a
Operation tags:1:[s summary:2:s description:3:s operationId:5:s produces:6:[s consumes:7:[s parameters:8:[ParametersItem responses:9:Responses schemes:10:[s deprecated:11:b security:12:[SecurityRequirement x-:13:a
ParametersItem |1:Parameter |2:Reference
Parameter |1:BodyParameter |2:NonBodyParameter
NonBodyParameter |1:HeaderParameter |3:QueryParameter |4:PathParameter
Reference $ref:1:s description:2:s
BodyParameter description:1:s name:2:s in:3:s required:4:b schema:5:Schema x-:6:a
HeaderParameter required:1:b in:2:s description:3:s name:4:s type:5:s format:6:s items:7:Items collectionFormat:8:s default:9:a maximum:10:d exclusiveMaximum:11:b minimum:12:d exclusiveMinimum:13:b maxLength:14:l minLength:15:l pattern:16:s maxItems:17:l minItems:18:l uniqueItems:19:b enum:20:[a multipleOf:21:d x-:22:a
QueryParameter required:1:b in:2:s description:3:s name:4:s allowEmptyValue:5:b type:6:s format:7:s items:8:Items collectionFormat:9:s default:10:a maximum:11:d exclusiveMaximum:12:b minimum:13:d exclusiveMinimum:14:b maxLength:15:l minLength:16:l pattern:17:s maxItems:18:l minItems:19:l uniqueItems:20:b enum:21:[a multipleOf:22:d x-:23:a
PathParameter required:1:b in:2:s description:3:s name:4:s type:5:s format:6:s items:7:Items collectionFormat:8:s default:9:a maximum:10:d exclusiveMaximum:11:b minimum:12:d exclusiveMinimum:13:b maxLength:14:l minLength:15:l pattern:16:s maxItems:17:l minItems:18:l uniqueItems:19:b enum:20:[a multipleOf:21:d x-:22:a
Items type:1:s format:2:s items:3:Items collectionFormat:4:s default:5:a
ParameterDefinitions *:1:Parameter
Responses *:1:ResponseValue x-:2:a
ResponseValue |1:Response |2:Reference
Response description:1:s schema:2:SchemaItem x-:5:a
SchemaItem |1:Schema
Definitions *:1:Schema
Properties *:1:Schema
Schema $ref:1:s format:2:s title:3:s description:4:s default:5:a multipleOf:6:d maximum:7:d exclusiveMaximum:8:b minimum:9:d exclusiveMinimum:10:b maxLength:11:l minLength:12:l pattern:13:s maxItems:14:l minItems:15:l uniqueItems:16:b maxProperties:17:l minProperties:18:l required:19:[s enum:20:[a additionalProperties:21:AdditionalProperties type:22:Type items:23:ItemsItem allOf:24:[Schema properties:25:Properties discriminator:26:s readOnly:27:b externalDocs:29:ExternalDocs example:30:a x-:31:a
AdditionalProperties |1:Schema |2:b
Type |1:[s
ItemsItem |1:Schema
ExternalDocs description:1:s url:2:s x-:3:a
SecurityDefinitions *:1:SecurityDefinition
SecurityDefinition |2:ApiKey
ApiKey type:1:s name:2:s in:3:s description:4:s x-:5:a
SecurityRequirement *:1:Strings
Strings |1:[s
`

const v3 = `
Document openapi:1:s info:2:Info paths:4:Paths components:5:Components security:6:[SecurityRequirement x-:9:a
Info title:1:s description:2:s version:6:s x-:7:a
Paths *:1:PathItem x-:2:a
PathItem $ref:1:s summary:2:s description:3:s get:4:Operation put:5:Operation post:6:Operation delete:7:Operation options:8:Operation head:9:Operation patch:10:Operation parameters:13:[ParameterOr x-:14:a
Operation tags:1:[s summary:2:s description:3:s operationId:5:s parameters:6:[ParameterOr requestBody:7:RequestBodyOr responses:8:Responses deprecated:10:b security:11:[SecurityRequirement x-:13:a
ParameterOr |1:Parameter |2:Reference
Parameter name:1:s in:2:s description:3:s required:4:b deprecated:5:b allowEmptyValue:6:b style:7:s explode:8:b allowReserved:9:b schema:10:SchemaOr content:13:MediaTypes x-:14:a
RequestBodyOr |1:RequestBody |2:Reference
RequestBody description:1:s content:2:MediaTypes required:3:b x-:4:a
Responses default:1:ResponseOr *:2:ResponseOr x-:3:a
ResponseOr |1:Response |2:Reference
Response description:1:s content:3:MediaTypes x-:5:a
MediaTypes *:1:MediaType
MediaType schema:1:SchemaOr x-:5:a
Components schemas:1:Schemas securitySchemes:7:SecuritySchemes x-:10:a
Schemas *:1:SchemaOr
SchemaOr |1:Schema |2:Reference
Reference $ref:1:s summary:2:s description:3:s
Schema nullable:1:b readOnly:3:b writeOnly:4:b externalDocs:6:ExternalDocs example:7:a deprecated:8:b title:9:s multipleOf:10:d maximum:11:d exclusiveMaximum:12:b minimum:13:d exclusiveMinimum:14:b maxLength:15:l minLength:16:l pattern:17:s maxItems:18:l minItems:19:l uniqueItems:20:b maxProperties:21:l minProperties:22:l required:23:[s enum:24:[a type:25:s allOf:26:[SchemaOr oneOf:27:[SchemaOr anyOf:28:[SchemaOr not:29:Schema items:30:ItemsItem properties:31:Schemas additionalProperties:32:AdditionalProperties default:33:Default description:34:s format:35:s x-:36:a
AdditionalProperties |1:SchemaOr |2:b
ItemsItem |1:SchemaOr
Default |1:d |2:b |3:s
ExternalDocs description:1:s url:2:s x-:3:a
SecuritySchemes *:1:SecuritySchemeOr
SecuritySchemeOr |1:SecurityScheme |2:Reference
SecurityScheme type:1:s description:2:s name:3:s in:4:s scheme:5:s bearerFormat:6:s x-:9:a
SecurityRequirement *:1:Strings
Strings |1:[s
`

export type OpenApiField = {
  readonly member: string
  readonly number: number
  /** Without the bracket. */
  readonly type: string
  readonly many: boolean
}

/** In the order of their numbers, in which they are written. */
export type Messages = ReadonlyMap<string, readonly OpenApiField[]>

function parse(text: string): Messages {
  const lines = text.trim().split('\n')
  return new Map(
    lines.map((line) => {
      const [name = '', ...fields] = line.split(' ')
      return [name, fields.map(parseField).sort((a, b) => a.number - b.number)]
    }),
  )
}

function parseField(text: string): OpenApiField {
  const [member = '', number, type = ''] = text.replace('|', '|:').split(':')
  const many = type.startsWith('[')
  return { member, number: Number(number), type: many ? type.slice(1) : type, many }
}

const parsed = new Map<string, Messages>()

export function openApiMessages(version: 'v2' | 'v3'): Messages {
  const known = parsed.get(version) ?? parse(version === 'v2' ? v2 : v3)
  parsed.set(version, known)
  return known
}
