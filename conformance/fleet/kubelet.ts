/**
 * A real kubelet from what `ake join` wrote, and from nothing else: its node becomes ready and runs pods, it serves with a certificate that the cluster signed, and it
 * goes on while `ake edge` renews the certificate that both show, until the first one is over and no request of it has failed. Takes as long as client-go
 * takes to look at the file again. Needs root and some packages (`--node`).
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { type Link, startLink } from '../link.ts'
import { Machine } from '../node/machine.ts'
import { ake, EdgeNode, edgeData } from '../node/node.ts'
import { install, missing } from '../node/packages.ts'
import { freePorts } from '../ports.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { JoinedNodeScene, joinedName, servingFile } from './kubeletscene.ts'
import { JoiningWorld } from './world.ts'

export const step: Step = { name: 'fleet-kubelet', tier: 'node', minutes: 8, missing: () => missing(), run }

/**
 * With the five minutes by which the signer backdates: another is due 2.7 to 3.8 minutes after the first, the kubelet looks five minutes after its
 * start, and the first is over after six.
 */
const signing = '6m'

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  if (process.getuid?.() !== 0) throw new Error('this proof needs root: it makes namespaces and containers')
  await mkdir(dir, { recursive: true })
  await install(progress)
  const { bin } = await buildKubernetes({ only: ['kubelet', 'kubectl'], progress })
  const machine = new Machine({ dir: join(dir, 'machine'), name: `fleet${process.pid}`.slice(0, 11) })
  // The API server believes a kubelet's port by the cluster's authority alone.
  const apiServerArgs = [`--kubelet-certificate-authority=${join(dir, 'oracle', 'ca.crt')}`]
  const hubArgs = ['--host', machine.host, '--host', '127.0.0.1']
  const world = await JoiningWorld.open(context, { signing, apiServerArgs, hubArgs })
  const end = () => machine.stop()
  process.once('exit', end)
  signal.addEventListener('abort', end, { once: true })
  const findings = new Findings()
  const [port] = (await freePorts(1)) as [number]
  let link: Link | undefined
  try {
    const joinMachine = async () => {
      link ??= await startLink({ target: { host: '127.0.0.1', port: world.hub.port }, host: machine.host, port })
      const words = await world.token(`wss://${machine.host}:${port}`)
      const said = await machine.run(ake, [...words, '--name', joinedName, '--data', edgeData])
      findings.check(said.includes(`joined as node ${joinedName}`), 'the machine joins', said)
    }
    const node = new EdgeNode({
      ...{ dir, bin, name: joinedName, oracle: world.oracle, machine, prepareNetwork: joinMachine },
      way: {
        edge: ['--config', `${edgeData}/edge.yaml`],
        kubeconfig: `${edgeData}/kubelet.kubeconfig`,
        awaited: servingFile,
      },
      edgeArgs: ['--kubelet-serving-certificate', servingFile],
      kubelet: {
        ...{ tlsCertFile: servingFile, tlsPrivateKeyFile: servingFile, rotateCertificates: false },
        authentication: { x509: { clientCAFile: `${edgeData}/cluster-ca.crt` } },
        // Its own word is how relists are counted, and that it has taken another certificate.
        logging: { verbosity: 2 },
        // That it still does is looked for; where nothing changes it would do so every five minutes.
        nodeStatusReportFrequency: '10s',
      },
    })
    await new JoinedNodeScene({ context, world, node, findings, bin }).play()
    return findings.result
  } finally {
    signal.removeEventListener('abort', end)
    await machine.cut()
    process.removeListener('exit', end)
    await link?.close()
    await world.stop()
  }
}
