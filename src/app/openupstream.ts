/** The way to an API server as a command opens it. What is wrong with a kubeconfig is for the operator to put right, and so a UsageError. */
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import { dialTcp } from '../upstream/dial.ts'
import { DirectUpstream } from '../upstream/direct.ts'
import { akeVersion } from './version.ts'

type Parts = Parameters<typeof DirectUpstream.open>[0]

export async function openUpstream(
  as: 'edge' | 'hub',
  parts: Omit<Parts, 'dial' | 'environment' | 'userAgent' | 'clock'>,
): Promise<DirectUpstream> {
  try {
    return await DirectUpstream.open({
      ...{ ...parts, dial: dialTcp(), environment: process.env },
      ...{ userAgent: `ake/${akeVersion} (${as})`, clock: systemClock },
    })
  } catch (error) {
    throw new UsageError(reasonOf(error))
  }
}
