/** Tokens that both sides issue: what they claim, what is said of them, and until when they count. */
import type { Findings } from '../findings.ts'
import { authentication, shop } from './cases.ts'
import type { Both, Request, Sides } from './sides.ts'

type Issued = {
  readonly spec: object
  readonly status: { readonly token: string; readonly expirationTimestamp: string }
}

/** A token says what it says in its middle part; its times count from when it was made. */
function claimed(body: unknown): unknown {
  const { status, ...rest } = body as Issued
  const claims = JSON.parse(Buffer.from(status.token.split('.')[1] ?? '', 'base64url').toString()) as {
    exp: number
    iat: number
    nbf: number
    'kubernetes.io': { warnafter?: number }
  }
  const { exp, iat, nbf, 'kubernetes.io': own, ...others } = claims
  const since = (moment: number | undefined) => (moment === undefined ? undefined : moment - iat)
  const told = Date.parse(status.expirationTimestamp) / 1000 - iat
  // A second may pass between the answer and its token.
  const lasts = Math.abs(told - (own.warnafter === undefined ? exp - iat : (since(own.warnafter) ?? 0))) <= 1
  return {
    ...rest,
    lasts,
    claims: { ...others, exp: since(exp), nbf: since(nbf), own: { ...own, warnafter: since(own.warnafter) } },
  }
}

const request = (spec: object = {}, metadata: object = {}, account = 'reader'): Request => ({
  ...{ method: 'POST', path: `${shop}/serviceaccounts/${account}/token`, body: { metadata, spec }, of: claimed },
})
const bound = (kind: string, name: string, more: object = {}) => ({
  boundObjectRef: { kind, apiVersion: 'v1', name, ...more },
})

const requests: readonly (readonly [what: string, request: Request])[] = [
  ['a token', request()],
  ['a token for a day', request({ expirationSeconds: 86_400 })],
  ['a token for others', request({ audiences: ['vault', 'https://kubernetes.default.svc'] })],
  ['a token of a pod', request(bound('Pod', 'till-1'))],
  ['a token as a kubelet asks for it', request({ ...bound('Pod', 'till-1'), expirationSeconds: 3_607 })],
  ['the same for others', request({ ...bound('Pod', 'till-1'), expirationSeconds: 3_607, audiences: ['vault'] })],
  ['a token of a node', request(bound('Node', 'n1'))],
  ['a token of a secret', request(bound('Secret', 'till'))],
  ['a token of a moment', request({ expirationSeconds: 599 })],
  ['a token for ever', request({ expirationSeconds: 2 ** 32 + 1 })],
  ['a token of a pod that is not there', request(bound('Pod', 'none'))],
  ["a token of another account's pod", request(bound('Pod', 'till-1'), {}, 'writer')],
  ['a token of another pod of that name', request(bound('Pod', 'till-1', { uid: 'x' }))],
  ['a token of a ConfigMap', request(bound('ConfigMap', 'prices'))],
  ['a token of a group', request({ boundObjectRef: { kind: 'Deployment', apiVersion: 'apps/v1', name: 'x' } })],
  ['a token by another name', request({}, { name: 'x' })],
  ['a token in another namespace', request({}, { namespace: 'other' })],
  ['a token of another uid', request({}, { uid: '6e5a1a4c-0000-4000-8000-000000000000' })],
  ['a token of nobody', request({}, {}, 'none')],
]

export async function issue(sides: Sides, account: string, spec: object = {}): Promise<Both<string>> {
  const [real, ours] = await sides.ask('admin', request(spec, {}, account))
  const tokenOf = ({ status, body }: { status: number; body: string }) => {
    if (status !== 201) throw new Error(`no token: ${status} ${body}`)
    return (JSON.parse(body) as Issued).status.token
  }
  return [tokenOf(real), tokenOf(ours)]
}

/** A review of a token, which is another on each side. */
async function review(
  sides: Sides,
  findings: Findings,
  what: string,
  [real, ours]: Both<string>,
  audiences: readonly string[] = [],
): Promise<void> {
  const path = `${authentication}/tokenreviews`
  const asked = (token: string): Request => ({ method: 'POST', path, body: { spec: { token, audiences } } })
  const said = (body: string) =>
    JSON.stringify((JSON.parse(body) as { status: unknown }).status).replaceAll(uuid, '<uuid>')
  const [first] = await sides.ask('admin', asked(real))
  const [, second] = await sides.ask('admin', asked(ours))
  findings.equal([second.status, said(second.body)], [first.status, said(first.body)], `a review of ${what}`)
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

export async function checkTokens(sides: Sides, findings: Findings): Promise<void> {
  const pod = {
    metadata: { name: 'till-1' },
    spec: { serviceAccountName: 'reader', nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
  }
  const made = await sides.ask('admin', { method: 'POST', path: `${shop}/pods`, body: pod })
  if (made.some(({ status }) => status !== 201)) throw new Error(`no pod: ${made.map(({ body }) => body).join()}`)
  for (const [what, one] of requests) await sides.compare(what, 'admin', one)
  for (const who of ['reader', 'nobody', 'anonymous']) await sides.compare('a token', who, request())
  const plain = await issue(sides, 'reader')
  await review(sides, findings, 'a token', plain)
  await review(sides, findings, 'a token for another audience', plain, ['vault'])
  await review(sides, findings, 'a token of a node', await issue(sides, 'reader', bound('Node', 'n1')))
  await review(sides, findings, 'a token for two', await issue(sides, 'reader', { audiences: ['vault', 'bank'] }), [
    'bank',
    'x',
  ])
  await review(sides, findings, 'nonsense', ['nonsense', 'nonsense'])
  const crossed: Both<string> = [plain[1], plain[0]]
  await review(sides, findings, 'a token of the other side', crossed)
  const forged = plain.map(
    (token) => `${token.slice(0, token.lastIndexOf('.') - 2)}AA${token.slice(token.lastIndexOf('.'))}`,
  )
  sides.know('forger', [{ token: forged[0] as string }, { token: forged[1] as string }])
  await sides.compare('a forged token', 'forger', { path: '/api' })
}

/** With its pod or its account a token ends. */
export async function checkEndings(sides: Sides, findings: Findings): Promise<void> {
  const ofPod = await issue(sides, 'reader', bound('Pod', 'till-1'))
  const ofAccount = await issue(sides, 'nobody')
  sides.know('pod', [{ token: ofPod[0] }, { token: ofPod[1] }])
  sides.know('account', [{ token: ofAccount[0] }, { token: ofAccount[1] }])
  await sides.compare('before its pod goes', 'pod', { path: `${shop}/configmaps` })
  await sides.compare('before it goes', 'account', { path: '/api', of: () => undefined })
  await sides.ask('admin', { method: 'DELETE', path: `${shop}/pods/till-1?gracePeriodSeconds=0` })
  await sides.ask('admin', { method: 'DELETE', path: `${shop}/serviceaccounts/nobody` })
  await sides.compare('after its pod went', 'pod', { path: `${shop}/configmaps` })
  const [, ours] = await sides.compare('after it went', 'account', { path: '/api', of: () => undefined })
  findings.equal(ours.status, 401, 'the token of an account that is gone')
}
