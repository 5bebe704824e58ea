/** The acts of a node that joined: it begins, is served and serves, and its certificates are renewed under it. */
import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { until } from '../../src/base/until.test-support.ts'
import { nodeSigners, signingRequests } from '../../src/kube/certificatesigning.ts'
import { pemsIn } from '../../src/pki/certificate.ts'
import type { Findings } from '../findings.ts'
import { askedOf } from '../node/asked.ts'
import { begunIn } from '../node/begun.ts'
import type { Container } from '../node/containers.ts'
import { type EdgeNode, edgeData } from '../node/node.ts'
import { logged, namespace, needed, podNamed, pods } from '../node/pods.ts'
import { agreed, isNodeReady, logOf } from '../node/told.ts'
import { ask } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'
import type { StepContext } from '../step.ts'
import type { JoiningWorld } from './world.ts'

const execute = promisify(execFile)

export const joinedName = 'edge-node'
/** As the machine names it. */
export const servingFile = `${edgeData}/kubelet-serving.pem`
const kubeletPort = 10250
const waiting = { withinMs: 120_000, everyMs: 200 }
/** From the kubelet's start: client-go looks at the file after five minutes. */
const takenMsMax = 360_000
const lookMs = 1_000
/** How long the kubelet goes on after its first certificate is over: it renews its lease every ten seconds. */
const afterMs = 25_000
/** What client-go says when it finds another certificate in the file. */
const rotated = /[Cc]ertificate rotation detected/
/** What a kubelet says that is not believed, or does not believe. */
const refused = /Unauthorized|x509:|certificate has expired|tls: /

type Parts = {
  readonly context: StepContext
  readonly world: JoiningWorld
  readonly node: EdgeNode
  readonly findings: Findings
  readonly bin: string
}

type Request = {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly signerName: string; readonly username: string; readonly usages: readonly string[] }
  readonly status: { readonly conditions?: readonly unknown[]; readonly certificate?: string }
}

export class JoinedNodeScene {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async play(): Promise<void> {
    const { context, findings } = this.#parts
    const before = await this.#begin()
    await this.#serve()
    context.progress('the certificate is renewed under the kubelet')
    const ending = new AbortController()
    const approving = this.#approveAll(ending.signal)
    try {
      await this.#renew(before)
    } finally {
      ending.abort()
      const approved = await approving
      findings.note(`${approved} further requests for serving were approved`)
    }
  }

  async #begin(): Promise<readonly Container[]> {
    const { context, world, node, findings } = this.#parts
    context.progress('a machine joins, and its kubelet starts from what was written')
    const make = creatorOf(world.oracle)
    const [space, ...rest] = needed()
    await make('/api/v1/namespaces', space as object)
    for (const object of rest) await make(pathOf(object), object)
    await node.prepare()
    await node.boot({ through: 'edge' })
    await this.#found('the node is Ready', () => isNodeReady(world.oracle, joinedName, 0))
    const rootCa = `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`
    await this.#found(
      'the cluster’s authority is published',
      async () => (await ask(world.oracle, rootCa)).status === 200,
    )
    for (const pod of pods(joinedName)) await make(pathOf(pod), pod)
    const running = await this.#found('both pods are ready', () => agreed(node.containers, world.oracle))
    type Status = {
      readonly edges: readonly { readonly name: string; readonly certificate: { readonly by: string } }[]
    }
    const { edges } = await world.hub.status<Status>()
    findings.note(`the hub has ${edges.map(({ name, certificate }) => `${name} by ${certificate.by}`).join()}`)
    return running
  }

  /** The API server, which trusts the cluster's authority alone, reaches the kubelet's port once a person has approved. */
  async #serve(): Promise<void> {
    const { context, world, node, findings } = this.#parts
    context.progress('the kubelet serves')
    const early = await logOf(world.oracle, 'full')
    findings.check(/x509/.test(early), 'before that the API server does not believe its port', early)
    const request = await this.#found('the edge has asked for a certificate to serve with', async () =>
      (await this.#pending()).at(0),
    )
    const { name } = request.metadata
    findings.equal(request.spec.username, `system:node:${joinedName}`, 'in the name of its node')
    await this.#kubectl('certificate', 'approve', name)
    const signed = await this.#found('it is written', async () => {
      const [cert] = pemsIn(await this.#inMachine(servingFile))
      const found = cert === undefined ? undefined : new X509Certificate(cert)
      return found?.verify(found.publicKey) === false && found
    })
    findings.check(
      signed.checkIssued(new X509Certificate(world.oracle.ca)) && signed.checkIP(node.machine.address) !== undefined,
      'by the cluster, for the address of the node',
      signed.subjectAltName,
    )
    await this.#found('the kubelet shows it', async () => (await this.#shown()) === signed.fingerprint256)
    await this.#found('the log of a pod is read through the API server', async () =>
      (await logOf(world.oracle, 'full')).includes(logged),
    )
    const said = await this.#kubectl('exec', '-n', namespace, 'full', '--', 'cat', '/config/greeting')
    findings.equal(said, 'hello', 'kubectl exec')
  }

  async #renew(before: readonly Container[]): Promise<void> {
    const { context, world, node, findings } = this.#parts
    const [metrics, first] = [await this.#failures(), await this.#credential()]
    const startedMs = performance.now()
    const certificates = new Set<string>([first.fingerprint256])
    const isTaken = async () => rotated.test(await readFile(node.kubeletLog, 'utf8'))
    while (!(await isTaken()) && performance.now() - startedMs < takenMsMax) {
      certificates.add((await this.#credential()).fingerprint256)
      await pause(lookMs, undefined, { signal: context.signal })
    }
    findings.check(certificates.size > 1, 'the edge has renewed the certificate', certificates.size)
    findings.check(await isTaken(), 'the kubelet has taken another')
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0)
    findings.note(`${certificates.size - 1} renewals; the kubelet took another certificate after ${seconds} s`)
    const overMs = first.validToDate.getTime() - Date.now()
    context.progress(`the first certificate is over in ${Math.round(overMs / 1_000)} s`)
    await pause(Math.max(0, overMs) + afterMs, undefined, { signal: context.signal })
    const pod = podNamed('later', joinedName)
    await creatorOf(world.oracle)(pathOf(pod), pod)
    const running = await this.#found('a new pod becomes ready', async () => {
      const all = await agreed(node.containers, world.oracle)
      return all?.some((one) => one.pod === 'later') === true && all
    })
    const ids = (all: readonly Container[]) => all.flatMap(({ id, pod }) => (pod === 'later' ? [] : [id])).join()
    findings.equal(ids(running), ids(before), 'the containers of before run')
    await this.#found('the node reports', () => isNodeReady(world.oracle, joinedName, first.validToDate.getTime()))
    findings.equal(await this.#failures(), metrics, 'no request of the kubelet was refused or failed meanwhile')
    const words = (await readFile(node.kubeletLog, 'utf8')).split('\n').filter((line) => refused.test(line))
    // It does not answer whom it cannot believe: the API server, before the kubelet had its certificate.
    const own = words.filter((line) => !line.includes('TLS handshake error'))
    findings.equal(own, [], 'the kubelet complains of no certificate')
    const begun = [...(await begunIn(node.kubeletLog))]
    findings.equal(
      begun.filter(([, times]) => times > 1),
      [],
      `none of ${begun.length} informers of the kubelet began anew`,
    )
    findings.check((await logOf(world.oracle, 'full')).includes(logged), 'its port is believed to the end')
    for (const line of askedOf(await node.metrics())) findings.note(line)
  }

  /** As an approver of a cluster would; answers how many. */
  async #approveAll(signal: AbortSignal): Promise<number> {
    let approved = 0
    while (!signal.aborted) {
      for (const { metadata } of await this.#pending().catch(() => [])) {
        await this.#kubectl('certificate', 'approve', metadata.name)
        approved++
      }
      await pause(lookMs, undefined, { signal }).catch(() => {})
    }
    return approved
  }

  async #pending(): Promise<readonly Request[]> {
    const list = await this.#parts.world.read<{ readonly items: readonly Request[] }>(signingRequests)
    const isOpen = ({ spec, status }: Request) =>
      spec.signerName === nodeSigners.serving.signerName && (status.conditions ?? []).length === 0
    return (list?.items ?? []).filter(isOpen)
  }

  /** Of requests at the edge, by code, what was not done: what a kubelet asks twice by design (409) and events that are over (404) apart. */
  async #failures(): Promise<string[]> {
    const asked = askedOf(await this.#parts.node.metrics())
    return asked.filter((line) => !/, (2\d\d|404|409):/.test(line))
  }

  async #credential(): Promise<X509Certificate> {
    const [cert] = pemsIn(await this.#inMachine(`${edgeData}/credential.pem`))
    return new X509Certificate(cert ?? '')
  }

  #inMachine(path: string): Promise<string> {
    return readFile(join(this.#parts.node.machine.lib, path.replace('/var/lib/', '')), 'utf8')
  }

  /** The certificate at the kubelet's port. */
  #shown(): Promise<string> {
    const host = this.#parts.node.machine.address
    return new Promise((done, fail) => {
      const socket = connect({ host, port: kubeletPort, rejectUnauthorized: false }, () => {
        done(socket.getPeerX509Certificate()?.fingerprint256 ?? '')
        socket.destroy()
      })
      socket.on('error', fail)
    })
  }

  async #kubectl(...args: readonly string[]): Promise<string> {
    const { bin, world } = this.#parts
    const { stdout } = await execute(join(bin, 'kubectl'), ['--kubeconfig', world.oracle.kubeconfig, ...args])
    return stdout
  }

  async #found<Found>(what: string, look: () => Promise<Found | false | undefined>): Promise<Found> {
    const { context, findings } = this.#parts
    const started = performance.now()
    const said = `${what} (see ${context.dir})`
    const found = await until(() => look().catch(() => undefined), said, { ...waiting, signal: context.signal })
    findings.check(true, what)
    const seconds = (performance.now() - started) / 1000
    if (seconds > 1) findings.note(`${what}: after ${seconds.toFixed(1)} s`)
    return found as Found
  }
}

function pathOf(object: object): string {
  const { kind, metadata } = object as { kind: string; metadata: { namespace?: string } }
  const plural = `${kind.toLowerCase()}s`
  return metadata.namespace === undefined ? `/api/v1/${plural}` : `/api/v1/namespaces/${metadata.namespace}/${plural}`
}
