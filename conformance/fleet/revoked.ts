/** A machine that joined and was lost: what the cluster signed for it is taken back, and whoever has its disk or a token does not come back by its name. */
import { execFile } from 'node:child_process'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { signingRequestOf, signingRequests } from '../../src/kube/certificatesigning.ts'
import { signingRequest } from '../../src/pki/signingrequest.ts'
import { buildKubernetes } from '../build.ts'
import type { Findings } from '../findings.ts'
import { Box } from './box.ts'
import { makeNode } from './joined.ts'
import { ticketOf, tryLink } from './linktry.ts'
import type { JoiningWorld } from './world.ts'

const execute = promisify(execFile)
const manifest = join(import.meta.dirname, '..', '..', 'deploy', 'edgepolicy.yaml')
const name = 'edge-lost'

export async function checkRevoked(world: JoiningWorld, findings: Findings): Promise<void> {
  await definePolicies(world)
  const token = await world.token()
  const joining = (data: string, ...more: string[]) =>
    world.ake([...token, '--name', name, '--data', world.folder(data), '--wait', '20s', ...more])
  const joined = await joining('lost')
  findings.check(joined.code === 0, 'it joins', joined)
  const file = join(world.folder('lost'), 'credential.pem')
  const { port } = world.hub
  const session = await ticketOf({ file, port }, world.context.signal)
  const before = await tryLink({ file, port, session })
  findings.check(before.resumed && before.said.startsWith('HTTP/1.1 101'), 'its ticket gives a link', before)
  const box = await Box.open({ file, ports: [port] })
  await world.until('it has a link', async () => box.link.current !== undefined)
  findings.equal(await makeNode(box, name), 201, 'its node is made through the link')
  await world.until('an Event that it joined', async () => (await eventsOf(world)).includes('EdgeJoined'))

  await revoke(world)
  await world.until('its link ends', async () => box.link.current === undefined)
  await world.until('it is told why', async () => /revoked .*: join again with --replace after 20/.test(box.link.why))
  const counted = await triesCounted(world)
  for (const [what, resumes] of [
    ['a resumed session', true],
    ['a full handshake', false],
  ] as const) {
    const { resumed, said } = await tryLink({ file, port, session: resumes ? session : undefined })
    findings.equal(resumed, resumes, `${what} is one`)
    findings.check(/^HTTP\/1\.1 403 .*revoked/s.test(said), `${what} is refused`, said)
  }
  findings.check((await triesCounted(world)) - counted >= 2, 'each try is counted')
  const log = await readFile(world.folder('hub.log'), 'utf8')
  findings.check(/warn edge\.revoked .*edge=edge-lost/.test(log), 'that it tries is in the log')
  await world.until('an Event that it was revoked', async () => (await eventsOf(world)).includes('EdgeRevoked'))
  await checkNoOther(world, findings, { box, joining, file })
  await box.end()
}

type Lost = {
  readonly box: Box
  readonly joining: (data: string, ...more: string[]) => ReturnType<JoiningWorld['ake']>
  readonly file: string
}

/** No other certificate: by renewal, by joining again, by joining elsewhere; until it is taken back. */
async function checkNoOther(world: JoiningWorld, findings: Findings, { box, joining, file }: Lost): Promise<void> {
  const requests = (await world.requests()).length
  const credential = await readFile(file, 'utf8')
  findings.check(!/^2/.test(await renewal(box)), 'the hub passes on no request to renew it')
  const tooEarly = new RegExp(
    `what is issued to "${name}" before 20.* is revoked \\(policy/revoked-edges .* run the same command again after 20`,
  )
  for (const [what, words] of [
    ['joining again by its certificate', ['lost']],
    ['joining again with --replace', ['lost', '--replace']],
    ['joining from another folder', ['found', '--replace']],
  ] as const) {
    const [data, ...more] = words
    const { code, err } = await joining(data, ...more)
    findings.check(code === 2 && tooEarly.test(err), `${what} within five minutes`, { code, err })
  }
  await revoke(world, '--for-good')
  const forGood = new RegExp(`the name "${name}" was revoked for good .*--name, .*"ake hub revoke ${name} --undo"`)
  await world.until('the hub has heard that it is for good', async () =>
    forGood.test((await joining('found', '--replace')).err),
  )
  findings.equal((await world.requests()).length, requests, 'nothing was requested by all of these')
  findings.equal(await readFile(file, 'utf8'), credential, 'its credential is as it was')

  await revoke(world, '--undo')
  const taken = new RegExp(`a node of the name "${name}" is in the cluster, though not ready now: .*--replace`)
  await world.until('its name is taken by a Node that is not ready', async () =>
    taken.test((await joining('found')).err),
  )
  const replaced = await joining('found', '--replace')
  findings.check(replaced.code === 0, 'another machine takes its place, once that is said', replaced)
}

/** As an edge asks for another certificate of the cluster: through its link, in the name of its node. */
async function renewal(box: Box): Promise<string> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const subject = { commonName: `system:node:${name}`, organization: 'system:nodes' }
  const object = signingRequestOf({
    name: `renewal-of-${name}`,
    request: signingRequest({ subject }, key),
    use: 'client',
  })
  const asked = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(object)),
  }
  return await box.ask(signingRequests, asked).then(
    ({ status }) => String(status),
    (error: Error) => error.message,
  )
}

async function revoke(world: JoiningWorld, ...more: string[]): Promise<void> {
  const { code, err } = await world.ake(['hub', 'revoke', name, ...more, '--kubeconfig', world.oracle.kubeconfig])
  if (code !== 0) throw new Error(`ake hub revoke: ${err}`)
}

/** While the hub runs: it notices. */
async function definePolicies(world: JoiningWorld): Promise<void> {
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress: () => {} })
  await execute(join(bin, 'kubectl'), ['--kubeconfig', world.oracle.kubeconfig, 'apply', '-f', manifest])
  const served = async () => (await world.read('/apis/ake.dev/v1alpha1/edgepolicies')) !== undefined
  await world.until('EdgePolicies are served', served)
}

/** Reasons of the Events of its Node, as an operator asks for them. */
async function eventsOf(world: JoiningWorld): Promise<readonly string[]> {
  type Events = { readonly items: readonly { readonly reason: string }[] }
  const selector = `involvedObject.kind%3DNode%2CinvolvedObject.name%3D${name}`
  const events = await world.read<Events>(`/api/v1/namespaces/default/events?fieldSelector=${selector}`)
  return (events?.items ?? []).map(({ reason }) => reason)
}

async function triesCounted({ hub }: JoiningWorld): Promise<number> {
  const [, count = '0'] = /^ake_hub_edge_events_total\{reason="EdgeRevoked"\} (\d+)$/m.exec(await hub.metrics()) ?? []
  return Number(count)
}
