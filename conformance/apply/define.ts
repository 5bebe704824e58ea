/** The definitions and namespaces that scenarios need, on both servers, in effect before anything uses them. */
import { setTimeout as pause } from 'node:timers/promises'
import { crds } from '../corpus/definitions.ts'
import { get, post } from '../corpus.ts'
import type { Side } from '../exchange.ts'
import { changingDefinition, gadgetDefinition, group, openingDefinition } from './gadget.ts'

/** Of a kube-apiserver on a busy machine. */
const servedMsMax = 30_000
const askAgainMs = 100

const definitions = [
  { plural: 'gadgets', versions: ['v1', 'v2'], definition: gadgetDefinition },
  { plural: 'openings', versions: ['v1'], definition: openingDefinition },
  // Scenarios that change a definition have one each.
  { plural: 'ripens', versions: ['v1'], definition: changingDefinition('ripens', 'set') },
  { plural: 'hardens', versions: ['v1'], definition: changingDefinition('hardens', 'atomic') },
  { plural: 'closes', versions: ['v1'], definition: changingDefinition('closes') },
]

export async function defineAll(sides: readonly Side[]): Promise<void> {
  const give = performance.now() + servedMsMax
  for (const side of sides) {
    for (const { definition } of definitions) await side.exchange(post('', crds, definition), new Map())
    for (const { plural, versions } of definitions) {
      for (const version of versions) {
        const list = get('', `/apis/${group}/${version}/${plural}`)
        while ((await side.exchange(list, new Map())).status !== 200) {
          if (performance.now() > give) throw new Error(`${plural} are not served`)
          await pause(askAgainMs)
        }
      }
    }
  }
}

/** With the ServiceAccount that pods need. */
export async function makeNamespace(sides: readonly Side[], name: string): Promise<void> {
  for (const side of sides) {
    await side.exchange(post('', '/api/v1/namespaces', { metadata: { name } }), new Map())
    const account = { metadata: { name: 'default' } }
    await side.exchange(post('', `/api/v1/namespaces/${name}/serviceaccounts`, account), new Map())
  }
}
