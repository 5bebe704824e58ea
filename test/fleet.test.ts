/** A fleet of one: another authority of the hub under an open watch, then the edge is revoked, or its authority gone at once. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { until } from '../src/base/until.test-support.ts'
import { operate, withHubbedSite } from './hubprocess.ts'
import { configMap, configMaps, Watch } from './process.ts'

const definition = readFileSync(join(import.meta.dirname, '..', 'deploy', 'edgepolicy.yaml'), 'utf8')

test('[L31, L23] an edge hears of another authority without a new link or a relist; revoked it loses its link and serves its copy', () =>
  withHubbedSite(async (site) => {
    const cloud = site.client(site.cloud)
    const crd = load(definition.split(/^---$/m)[0] ?? '') as object
    await cloud.json('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd)
    await site.startHub('--trust-edges')
    await cloud.json('POST', configMaps, configMap('kept', {}))
    await site.go('hub', '--mirror', 'configmaps')
    const watch = new Watch(site.administrator(), `${configMaps}?watch=1&resourceVersion=0`)
    await until(() => watch.frames.length > 0)
    const lists = await site.lists('configmaps')
    const state = ['--state', join(site.folder, 'state')]
    const authorities = () => readFileSync(join(site.folder, 'n1.pem'), 'utf8').match(/BEGIN CERTIFICATE/g)?.length
    assert.equal(authorities(), 2, 'its own and the hub’s')
    await operate('authority', 'rotate', ...state)
    await until(() => authorities() === 3)
    await operate('authority', 'switch', ...state, '--force')
    await cloud.json('POST', configMaps, configMap('switched', {}))
    await until(() => watch.frames.some(({ object }) => object.metadata.name === 'switched'))
    assert.equal(await site.lists('configmaps'), lists)
    await operate('revoke', 'n1', '--kubeconfig', site.kubeconfig)
    await site.untilCloudIs('unreachable')
    await until(async () => /revoked/.test((await site.administrator().ask('GET', '/ake/status')).body.toString()))
    assert.equal((await site.administrator().ask('GET', `${configMaps}/kept?resourceVersion=0`)).status, 200)
    await operate('revoke', 'n1', '--undo', '--kubeconfig', site.kubeconfig)
    assert.equal(await site.lists('configmaps'), lists)
  }))

test('[L31] a link of an authority whose key others have ends when hubs hear of it, and is told why', () =>
  withHubbedSite(async (site) => {
    const state = ['--state', join(site.folder, 'state')]
    await operate('issue', 'n2', ...state, '--out', join(site.folder, 'n2.pem'))
    await operate('authority', 'rotate', ...state)
    await site.startHub('--trust-edges')
    await site.go('hub', '--mirror', 'configmaps')
    await operate('authority', 'switch', ...state, '--force', '--compromised')
    await site.untilCloudIs('unreachable')
    const said = async () => (await site.administrator().ask('GET', '/ake/status')).body.toString()
    await until(async () => /was retired|not signed by an authority of this hub/.test(await said()))
  }))
