/**
 * The same informers over a real kube-apiserver that is killed and started again: how many of them have to list again
 * there. Nothing passes or fails by it; the figure is what ours is measured against.
 */
import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { churn } from './informers.ts'
import { ask, type Oracle, startOracle } from './oracle.ts'
import type { Step } from './step.ts'

const plan = { writes: 12_000, restarts: 8 }
const askAgainMs = 100

export const step: Step = {
  name: 'contrast',
  tier: 'all',
  minutes: 5,
  async run(context) {
    // Not the shared one: nobody else's requests should meet a killed server.
    const dir = join(context.dir, 'oracle')
    const oracle = await startOracle({ dir, signal: context.signal, progress: context.progress })
    const server = await restartable(oracle, dir)
    try {
      const report = await churn(context, plan, {
        kubeconfig: oracle.kubeconfig,
        restart: async () => {
          await server.killAndStart()
          while (!(await isReady(oracle))) await pause(askAgainMs, undefined, { signal: context.signal })
        },
      })
      const again = report.informers.filter((one) => one.relists > 0)
      const relists = again.reduce((sum, one) => sum + one.relists, 0)
      const figures =
        `kube-apiserver, ${report.writes} writes, ${plan.restarts} restarts by kill -9: ` +
        `${again.length} of ${report.informers.length} informers listed again, ${relists} times in all`
      const reason = again[0]?.reasons?.[0]
      return { passed: 1, failed: 0, notes: reason === undefined ? [figures] : [figures, `for example ${reason}`] }
    } finally {
      server.end()
      oracle.stop()
    }
  },
}

async function isReady(oracle: Oracle): Promise<boolean> {
  const answer = await ask(oracle, '/readyz').catch(() => undefined)
  return answer?.status === 200
}

/** The API server without its etcd, started again with the command line it had. */
async function restartable(oracle: Oracle, dir: string): Promise<{ killAndStart(): Promise<void>; end(): void }> {
  let pid = oracle.pids.apiserver
  const [program, ...args] = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
  const log = openSync(join(dir, 'kube-apiserver.log'), 'a')
  const end = () => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  }
  process.once('exit', end)
  return {
    killAndStart: async () => {
      end()
      while (isAlive(pid)) await pause(askAgainMs)
      pid = spawn(program as string, args, { stdio: ['ignore', log, log], detached: true }).pid as number
    },
    end: () => {
      process.removeListener('exit', end)
      end()
    },
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
