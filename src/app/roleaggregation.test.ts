import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld, type World } from '../endpoint/world.test-support.ts'

const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const widgets = { verbs: ['get'], apiGroups: ['example.com'], resources: ['widgets'] }

async function has(world: World, name: string, resource = 'widgets'): Promise<boolean> {
  const { rules } = (await world.ask('GET', `${roles}/${name}`)).json
  return (rules ?? []).some(({ resources = [] }: { resources?: string[] }) => resources.includes(resource))
}

const labelled = (name: string, labels: object, rest: object = {}) => ({ metadata: { name, labels }, ...rest })
const toView = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }

test('[I2] the default roles that gather others are filled at the start, through each other', async () => {
  const world = await openWorld({ rbac: true })
  for (const name of ['view', 'edit', 'admin']) assert.ok(await has(world, name, 'configmaps'), name)
  assert.ok(await has(world, 'admin', 'roles'))
  assert.ok(!(await has(world, 'view', 'secrets')))
  const view = (await world.ask('GET', `${roles}/view`)).json
  const owners = view.metadata.managedFields.map(({ manager, operation }: any) => `${manager} ${operation}`)
  assert.deepEqual(owners, ['clusterrole-aggregation-controller Apply', 'kube-apiserver Update'])
})

test('[I2] a role that comes, changes and goes is gathered, and nothing is written where nothing changes', async () => {
  const world = await openWorld({ rbac: true })
  const before = (await world.ask('GET', `${roles}/view`)).json
  await world.ask('POST', roles, labelled('widgets', toView, { rules: [widgets] }))
  assert.equal(await world.aggregate(), true)
  for (const name of ['view', 'edit', 'admin']) assert.ok(await has(world, name), name)
  const { version } = world.copy.progress
  assert.equal(await world.aggregate(), true)
  assert.equal(world.copy.progress.version, version)
  await world.ask('DELETE', `${roles}/widgets`)
  assert.equal(await world.aggregate(), true)
  for (const name of ['view', 'edit', 'admin']) assert.ok(!(await has(world, name)), name)
  assert.deepEqual((await world.ask('GET', `${roles}/view`)).json.rules, before.rules)
})

test('[I2] two roles that gather each other come to rest, and a selector that cannot be read leaves its role alone', async () => {
  const world = await openWorld({ rbac: true })
  const gathering = (key: string) => ({ clusterRoleSelectors: [{ matchLabels: { [key]: 'yes' } }] })
  const other = { ...widgets, resources: ['gadgets'] }
  await world.ask(
    'POST',
    roles,
    labelled('one', { one: 'yes' }, { rules: [widgets], aggregationRule: gathering('two') }),
  )
  await world.ask('POST', roles, labelled('two', { two: 'yes' }, { rules: [other], aggregationRule: gathering('one') }))
  const clusterRoleSelectors = [{ matchExpressions: [{ key: 'one', operator: 'Resembles', values: ['yes'] }] }]
  await world.ask('POST', roles, labelled('odd', {}, { rules: [widgets], aggregationRule: { clusterRoleSelectors } }))
  assert.equal(await world.aggregate(), true)
  assert.deepEqual([await has(world, 'one', 'gadgets'), await has(world, 'odd')], [true, true])
})

test('[I2] rules that another wrote into a role that gathers none stay, as with the controller of Kubernetes', async () => {
  const world = await openWorld({ rbac: true })
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { to: 'none' } }] }
  await world.ask('POST', roles, labelled('own', {}, { rules: [widgets], aggregationRule }))
  assert.equal(await world.aggregate(), true)
  assert.ok(await has(world, 'own'))
})
