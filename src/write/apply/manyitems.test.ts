import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldSet } from './fieldset.ts'
import { ownerKey, printManaged } from './managed/managed.ts'
import { fieldElement, type Path, valueElement } from './pathelement.ts'

/** How many maps are made while something is done. */
function mapsMade(work: () => void): number {
  const { Map: real } = globalThis
  let made = 0
  globalThis.Map = new Proxy(real, {
    construct: (target, given) => {
      made++
      return Reflect.construct(target, given)
    },
  })
  try {
    work()
  } finally {
    globalThis.Map = real
  }
  return made
}

test('[A8] printing the owner of a long list makes no map for each of its items', () => {
  const made = (items: number) => {
    const paths = Array.from({ length: items }, (_, at): Path => [fieldElement('list'), valueElement(`v${at}`)])
    const set = FieldSet.of(...paths)
    const key = ownerKey({ manager: 'm', operation: 'Update', apiVersion: 'v1', subresource: '' })
    const owners = new Map([[key, { set, apiVersion: 'v1', applied: false }]])
    return mapsMade(() => printManaged({ owners, times: new Map() }, true))
  }
  assert.equal(made(400), made(100))
})
