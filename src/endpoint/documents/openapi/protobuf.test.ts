/** What gnostic, which kube-apiserver writes these documents with, made of the same JSON. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openApiField, openApiMessage } from './protobuf.ts'

const v2 = {
  json:
    '{"swagger":"2.0","info":{"title":"T","version":"1"},"paths":{"/a/{name}":{"get":{"description":"d","tags":["x"' +
    ',"y"],"operationId":"o","consumes":["*/*"],"produces":["application/json"],"schemes":["https"],"deprecated":tr' +
    'ue,"parameters":[{"$ref":"#/parameters/p"},{"name":"h","in":"header","type":"string","required":true},{"name":' +
    '"q","in":"query","type":"integer","uniqueItems":true,"format":"int32","default":3},{"name":"b","in":"body","re' +
    'quired":true,"schema":{"$ref":"#/definitions/D"}}],"responses":{"200":{"description":"OK","schema":{"$ref":"#/' +
    'definitions/D"}},"401":{"description":""}},"x-kubernetes-action":"get","x-kubernetes-group-version-kind":{"gro' +
    'up":"","version":"v1","kind":"D"}},"parameters":[{"name":"name","in":"path","type":"string","required":true}]}' +
    '},"definitions":{"D":{"description":"a D","type":"object","required":["a"],"properties":{"a":{"type":"string",' +
    '"enum":["x","y"],"pattern":"^a","maxLength":9},"b":{"type":"array","items":{"type":"number","minimum":0.5,"max' +
    'imum":10,"exclusiveMaximum":true},"minItems":0,"maxItems":300},"c":{"type":"object","additionalProperties":{"t' +
    'ype":"boolean"}},"d":{"additionalProperties":false,"default":{"k":[1,"true"]}},"x-odd":{"type":"string"}},"x-k' +
    'ubernetes-group-version-kind":[{"group":"","kind":"D","version":"v1"}],"x-kubernetes-validations":[{"rule":"se' +
    "lf.a == 'x: y' && size(self.b) > 3 || has(self.c) && self.c.all(k, self.c[k]) && self.a != 'something else" +
    '\'","message":"don\'t"},{"rule":"true","messageExpression":"\\"x\\""}],"x-kubernetes-unions":[{"discriminator"' +
    ':"type","fields-to-discriminateBy":{"a":"A"}}],"x-list":["a","null","1",2,null,true],"x-empty":{},"x-flag":tru' +
    'e}},"parameters":{"p":{"name":"p","in":"query","type":"boolean"}},"securityDefinitions":{"BearerToken":{"descr' +
    'iption":"Bearer","type":"apiKey","name":"authorization","in":"header"}},"security":[{"BearerToken":[]}]}',
  message:
    'CgMyLjASBgoBVBIBMULzAhLwAgoJL2Eve25hbWV9EuICEsECCgF4CgF5GgFkKgFvMhBhcHBsaWNhdGlvbi9qc29uOgMqLypCEhIQCg4jL3BhcmFt' +
    'ZXRlcnMvcEIbChkSFwoVCAESBmhlYWRlciIBaCoGc3RyaW5nQikKJxIlGiMSBXF1ZXJ5IgFxMgdpbnRlZ2VyOgVpbnQzMlIEEgIzCqABAUIiCiAK' +
    'HhIBYhoEYm9keSABKhEKDyMvZGVmaW5pdGlvbnMvREovCiIKAzIwMBIbChkKAk9LEhMKEQoPIy9kZWZpbml0aW9ucy9ECgkKAzQwMRICCgBSBWh0' +
    'dHBzWAFqHQoTeC1rdWJlcm5ldGVzLWFjdGlvbhIGEgRnZXQKakMKH3gta3ViZXJuZXRlcy1ncm91cC12ZXJzaW9uLWtpbmQSIBIeZ3JvdXA6ICIi' +
    'CnZlcnNpb246IHYxCmtpbmQ6IEQKShwKGhIYIhYIARIEcGF0aCIEbmFtZSoGc3RyaW5nSrkFCrYFCgFEErAFIgNhIESaAQFhsgEICgZvYmplY3TK' +
    'Ab8BCiQKAWESH1gJagJeYaIBBBICeAqiAQQSAnkKsgEICgZzdHJpbmcKNgoBYhIxcKwCsgEHCgVhcnJheboBIQofOQAAAAAAACRAQAFJAAAAAAAA' +
    '4D+yAQgKBm51bWJlcgohCgFjEhyqAQ4KDLIBCQoHYm9vbGVhbrIBCAoGb2JqZWN0CiYKAWQSISoaEhhrOgogICAgLSAxCiAgICAtICJ0cnVlIgqq' +
    'AQIQAAoUCgV4LW9kZBILsgEICgZzdHJpbmf6AUkKH3gta3ViZXJuZXRlcy1ncm91cC12ZXJzaW9uLWtpbmQSJhIkLSBncm91cDogIiIKICBraW5k' +
    'OiBECiAgdmVyc2lvbjogdjEK+gHXAQoYeC1rdWJlcm5ldGVzLXZhbGlkYXRpb25zEroBErcBLSBydWxlOiAnc2VsZi5hID09ICcneDogeScnICYm' +
    'IHNpemUoc2VsZi5iKSA+IDMgfHwgaGFzKHNlbGYuYykgJiYgc2VsZi5jLmFsbChrLCBzZWxmLmNba10pICYmIHNlbGYuYSAhPSAnJ3NvbWV0aGlu' +
    'ZyBlbHNlJycnCiAgbWVzc2FnZTogZG9uJ3QKLSBydWxlOiAidHJ1ZSIKICBtZXNzYWdlRXhwcmVzc2lvbjogJyJ4IicK+gFUChN4LWt1YmVybmV0' +
    'ZXMtdW5pb25zEj0SOy0gZGlzY3JpbWluYXRvcjogdHlwZQogIGZpZWxkcy10by1kaXNjcmltaW5hdGVCeToKICAgIGE6IEEK+gExCgZ4LWxpc3QS' +
    'JxIlLSBhCi0gIm51bGwiCi0gIjEiCi0gMgotIG51bGwKLSB0cnVlCvoBEAoHeC1lbXB0eRIFEgN7fQr6AREKBngtZmxhZxIHEgV0cnVlClIeChwK' +
    'AXASFxIVGhMSBXF1ZXJ5IgFwMgdib29sZWFuYhEKDwoLQmVhcmVyVG9rZW4SAGo6CjgKC0JlYXJlclRva2VuEikSJwoGYXBpS2V5Eg1hdXRob3Jp' +
    'emF0aW9uGgZoZWFkZXIiBkJlYXJlcg==',
}
const v3 = {
  json:
    '{"openapi":"3.0.0","info":{"title":"T","version":"1"},"paths":{"/a/{name}":{"get":{"description":"d","tags":["' +
    'x"],"operationId":"o","parameters":[{"name":"q","in":"query","schema":{"type":"integer","uniqueItems":true}},{' +
    '"$ref":"#/components/parameters/p"}],"responses":{"200":{"description":"OK","content":{"application/json":{"sc' +
    'hema":{"$ref":"#/components/schemas/D"}}}},"401":{"description":"Unauthorized"}},"x-kubernetes-action":"get"},' +
    '"post":{"requestBody":{"content":{"*/*":{"schema":{"$ref":"#/components/schemas/D"}}},"required":true},"respon' +
    'ses":{"default":{"description":"any"}}},"parameters":[{"name":"name","in":"path","required":true,"schema":{"ty' +
    'pe":"string"}}]}},"components":{"schemas":{"D":{"type":"object","nullable":true,"required":["a"],"properties":' +
    '{"a":{"type":"string","default":"","enum":["x"]},"n":{"type":"number","default":0,"multipleOf":2},"f":{"type":' +
    '"boolean","default":false},"o":{"default":{},"allOf":[{"$ref":"#/components/schemas/D"}]},"i":{"oneOf":[{"type' +
    '":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true},"m":{"type":"object","additionalProperties"' +
    ':{"$ref":"#/components/schemas/D"}},"l":{"type":"array","items":{"type":"string","default":"z"},"x-kubernetes-' +
    'list-map-keys":["a","b"]},"y":{"not":{"type":"string"},"additionalProperties":true}},"x-kubernetes-group-versi' +
    'on-kind":[{"group":"g","version":"v1","kind":"D"}]}},"securitySchemes":{"BearerToken":{"type":"apiKey","descri' +
    'ption":"Bearer","name":"authorization","in":"header"}}}}',
  message:
    'CgUzLjAuMBIGCgFUMgExIrECCq4CCgkvYS97bmFtZX0SoAIixAEKAXgaAWQqAW8yHQobCgFxEgVxdWVyeVIPCg2gAQHKAQdpbnRlZ2VyMh0SGwoZ' +
    'Iy9jb21wb25lbnRzL3BhcmFtZXRlcnMvcEJcEkEKAzIwMBI6CjgKAk9LGjIKMAoQYXBwbGljYXRpb24vanNvbhIcChoSGAoWIy9jb21wb25lbnRz' +
    'L3NjaGVtYXMvRBIXCgM0MDESEAoOCgxVbmF1dGhvcml6ZWRqHQoTeC1rdWJlcm5ldGVzLWFjdGlvbhIGEgRnZXQKMjg6KwopEiUKIwoDKi8qEhwK' +
    'GhIYChYjL2NvbXBvbmVudHMvc2NoZW1hcy9EGAFCCQoHCgUKA2FueWodChsKBG5hbWUSBHBhdGggAVILCgnKAQZzdHJpbmcqmgQK2wMK2AMKAUQS' +
    '0gMKzwMIAboBAWHKAQZvYmplY3T6AfECChwKAWESFwoVwgEEEgJ4CsoBBnN0cmluZ4oCAhoACiUKAW4SIAoeUQAAAAAAAABAygEGbnVtYmVyigIJ' +
    'CQAAAAAAAAAAChYKAWYSEQoPygEHYm9vbGVhbooCAhAACicKAW8SIgog0gEaEhgKFiMvY29tcG9uZW50cy9zY2hlbWFzL0SKAgAKTAoBaRJHCkXa' +
    'AQwKCsoBB2ludGVnZXLaAQsKCcoBBnN0cmluZ6ICJQoaeC1rdWJlcm5ldGVzLWludC1vci1zdHJpbmcSBxIFdHJ1ZQoKLwoBbRIqCijKAQZvYmpl' +
    'Y3SCAhwKGhIYChYjL2NvbXBvbmVudHMvc2NoZW1hcy9EClAKAWwSSwpJygEFYXJyYXnyARMKEQoPygEGc3RyaW5nigIDGgF6ogIoChp4LWt1YmVy' +
    'bmV0ZXMtbGlzdC1tYXAta2V5cxIKEggtIGEKLSBiCgoYCgF5EhMKEeoBCcoBBnN0cmluZ4ICAhABogJICh94LWt1YmVybmV0ZXMtZ3JvdXAtdmVy' +
    'c2lvbi1raW5kEiUSIy0gZ3JvdXA6IGcKICB2ZXJzaW9uOiB2MQogIGtpbmQ6IEQKOjoKOAoLQmVhcmVyVG9rZW4SKQonCgZhcGlLZXkSBkJlYXJl' +
    'choNYXV0aG9yaXphdGlvbiIGaGVhZGVy',
}

test('a document of either version is the message that gnostic makes of it', () => {
  for (const [version, { json, message }] of Object.entries({ v2, v3 })) {
    const made = openApiMessage(version as 'v2' | 'v3', 'Document', JSON.parse(json))
    assert.equal(made.toString('base64'), message, version)
  }
})

test('a document can be put together from its parts', () => {
  const { swagger, info, paths, definitions, ...rest } = JSON.parse(v2.json)
  const part = (name: string, members: object) =>
    Buffer.concat(Object.entries(members).map(([key, value]) => openApiMessage('v2', name, { [key]: value })))
  const whole = Buffer.concat([
    openApiMessage('v2', 'Document', { swagger, info }),
    openApiField('v2', 'Document', 'paths', part('Paths', paths)),
    openApiField('v2', 'Document', 'definitions', part('Definitions', definitions)),
    openApiMessage('v2', 'Document', rest),
  ])
  assert.equal(whole.toString('base64'), v2.message)
})
