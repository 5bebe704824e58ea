/** CPU time and memory of another process, as Linux counts them. */

import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ: a fixed 100 on every architecture we run on, whatever the kernel's own tick. */
const msPerTick = 10

/** User and system time of all threads so far. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second field is the command in brackets and may hold spaces; utime and stime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * msPerTick
}

/** The same by the scheduler's own count, in nanoseconds: for what takes less than a tick. Threads that ended are not in it. */
export function cpuExactMs(pid: number): number {
  let ns = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0])
  }
  return ns / 1e6
}

/** What it made the disk write, in whole pages, since it was started. */
export function writtenBytes(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'latin1'))?.[1])
}

export function memoryKb(pid: number, field: 'RssAnon' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const line = status.split('\n').find((text) => text.startsWith(`${field}:`))
  if (line === undefined) throw new Error(`/proc/${pid}/status has no ${field}`)
  return Number.parseInt(line.slice(field.length + 1), 10)
}

/** The arguments a process was started with. */
export function argumentsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
}
