/** An edge that was told its node: what that needs is there without the cloud, though no client has ever asked for it. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { outputOf, type Site, withSite, withSiteHere } from './edgeprocess.ts'
import { type Client, configMap, configMaps, Watch } from './process.ts'

const core = '/api/v1/namespaces/default'
const byName = (name: string) => `fieldSelector=metadata.name%3D${name}`

/** More than probes and quiet watches bring within a second. */
const probeBytes = 10_000

type StatusShown = { interests: { resource: string; state: string; objects: number; standing?: true }[] }

async function shown(site: Site): Promise<StatusShown['interests']> {
  const { body } = await site.administrator().ask('GET', '/ake/status')
  return (JSON.parse(body.toString()) as StatusShown).interests
}

async function createPod(cloud: Client): Promise<void> {
  await cloud.json('POST', configMaps, configMap('settings', { colour: 'red' }))
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'password' }, stringData: { word: 'x' } }
  await cloud.json('POST', `${core}/secrets`, secret)
  await cloud.json('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } })
  const container = { name: 'c', image: 'i', envFrom: [{ configMapRef: { name: 'settings' } }] }
  await createVolume(cloud)
  const device = { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim', metadata: { name: 'gpu' } }
  await cloud.json('POST', deviceClaims, { ...device, spec: { devices: {} } })
  const volumes = [
    { name: 'v', secret: { secretName: 'password' } },
    { name: 'd', persistentVolumeClaim: { claimName: 'data' } },
  ]
  const resourceClaims = [{ name: 'gpu', resourceClaimName: 'gpu' }]
  const spec = { nodeName: 'n1', containers: [container], volumes, resourceClaims }
  await cloud.json('POST', `${core}/pods`, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec })
}

const deviceClaims = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims'
const attachments = '/apis/storage.k8s.io/v1/volumeattachments'
const csi = { driver: 'disk.example.com', volumeHandle: 'vol-1' }
const attachment = `csi-${hash('sha256', `${csi.volumeHandle}${csi.driver}n1`)}`

/** One that is attached to the node. */
async function createVolume(cloud: Client): Promise<void> {
  const accessModes = ['ReadWriteOnce']
  const storage = '1Gi'
  const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' } }
  await cloud.json('POST', '/api/v1/persistentvolumes', {
    ...volume,
    spec: { accessModes, capacity: { storage }, csi },
  })
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' } }
  const bound = { accessModes, resources: { requests: { storage } }, volumeName: 'pv' }
  await cloud.json('POST', `${core}/persistentvolumeclaims`, { ...claim, spec: bound })
  const attached = { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: attachment } }
  const spec = { attacher: csi.driver, nodeName: 'n1', source: { persistentVolumeName: 'pv' } }
  await cloud.json('POST', attachments, { ...attached, spec })
}

test('cut off and rebooted it gives a kubelet that never asked before its pod, Secret and ConfigMap; kubectl finds OpenAPI', () =>
  withSite(['--node', 'n1'], async (site) => {
    const cloud = site.client(site.cloud)
    await createPod(cloud)
    const has = (interests: StatusShown['interests'], resource: string) =>
      interests.some((one) => one.resource === resource && one.objects === 1 && one.standing === true)
    await until(async () => {
      const interests = await shown(site)
      const own = ['pods', 'secrets', 'configmaps', 'nodes', 'resourceclaims', 'volumeattachments']
      return own.every((resource) => has(interests, resource))
    }, 'all of it is held')
    const { paths } = await cloud.json<{ paths: Record<string, { serverRelativeURL: string }> }>('GET', '/openapi/v3')
    const documents = Object.values(paths).map(({ serverRelativeURL }) => serverRelativeURL)
    const isKnown = async (url: string) => (await site.administrator().ask('GET', url)).status === 200
    // Only without the cloud does it show whether the last of them has come; while they come the line is left alone.
    let came = 0
    await until(
      async () => {
        const before = came
        came = site.link.stats().bytesDown
        if (came - before > probeBytes) return false
        await site.link.set('refuse')
        await site.untilCloudIs('unreachable')
        const known = await Promise.all(['/openapi/v2', ...documents].map(isKnown))
        if (known.every(Boolean)) return true
        await site.link.set('up')
        await site.untilCloudIs('reachable')
        return false
      },
      'OpenAPI is held',
      { withinMs: 60_000, everyMs: 1_000 },
    )
    await site.edge.end('SIGKILL')
    site.isEdgeProcess = false
    await site.startEdge()
    await site.untilCloudIs('unreachable')
    const kubelet = site.client()
    const statuses = async (urls: readonly string[]) => {
      const answers = await Promise.all(urls.map((url) => kubelet.ask('GET', url)))
      return answers.map(({ status }) => status)
    }
    const interests = (await shown(site)).length
    const review = async (verb: string) => {
      const body = { spec: { resourceAttributes: { verb, resource: 'pods' } } }
      return (await kubelet.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', body)).status
    }
    assert.deepEqual([await review('list'), await review('delete')], [201, 503], 'what is not known is not made up')
    const reads = [
      '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500&resourceVersion=0',
      `/api/v1/nodes?${byName('n1')}&limit=500&resourceVersion=0`,
      `${core}/secrets?${byName('password')}&limit=500&resourceVersion=0`,
      `${core}/configmaps?${byName('settings')}&limit=500&resourceVersion=0`,
    ]
    for (const url of reads) {
      const { items } = await kubelet.json<{ items: unknown[] }>('GET', url)
      assert.equal(items.length, 1, url)
    }
    for (const [resource, name] of [
      ['secrets', 'password'],
      ['configmaps', 'settings'],
    ] as const) {
      assert.deepEqual(await statuses([`${core}/${resource}/${name}`]), [200])
      const watch = new Watch(kubelet, `${core}/${resource}?${byName(name)}&watch=true&resourceVersion=0`)
      await watch.until((frames) => frames.some(({ object }) => object.metadata.name === name))
    }
    assert.deepEqual(await statuses([`${deviceClaims}/gpu`, `${attachments}/${attachment}`]), [200, 200])
    assert.deepEqual(
      await statuses(['/api/v1/services?resourceVersion=0', '/api/v1/namespaces?resourceVersion=0']),
      [200, 200],
    )
    assert.deepEqual(await statuses([`${core}/secrets?resourceVersion=0`]), [503], 'and nothing else of Secrets')
    assert.equal((await shown(site)).length, interests, 'a kubelet’s scopes are the ones that are held')
    assert.deepEqual([...new Set(await statuses(['/openapi/v2', '/openapi/v3', ...documents]))], [200])
  }))

test('`ake check` says yes once all is held, with the cloud and without; no, with what to do, where something is not; and that it cannot tell', () =>
  withSiteHere(['--node', 'n1', '--mirror', 'nosuch'], async (site) => {
    await createPod(site.client(site.cloud))
    const check = (...more: string[]) => outputOf(['check', '--data', site.edgeFolder, ...more])
    // What is held counts at once, though its watch may not be open yet: it says yes with a warning until then.
    const first = await until(async () => {
      const found = await check()
      return found.code === 0 && !found.stdout.includes('(syncing)') ? found : undefined
    }, 'it says yes')
    assert.match(first.stdout, /^This node would come back[\s\S]*names +ok +what its pods name: \d+ held/)
    assert.match(first.stdout, /options +warning +1 to be[\s\S]*To do:\noptions: --mirror nosuch: /)
    await site.link.set('refuse')
    await site.untilCloudIs('unreachable')
    const { code, stdout } = await check('--output', 'json')
    const { survives, checks } = JSON.parse(stdout)
    assert.deepEqual(
      [code, survives, checks.some(({ state }: { state: string }) => state === 'failed')],
      [0, 'yes', false],
    )
    const metrics = (await site.administrator().ask('GET', '/metrics')).body.toString()
    assert.match(metrics, /^ake_survives_reboot 1$/m)
    assert.match((await outputOf(['status', '--data', site.edgeFolder])).stdout, /^Reboot: +would be survived/m)

    await site.link.set('up')
    await site.untilCloudIs('reachable')
    const volumes = [{ name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }]
    const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }], volumes }
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'q' }, spec }
    await site.client(site.cloud).json('POST', `${core}/pods`, pod)
    const failed = await until(async () => {
      const found = await check()
      return found.code === 1 ? found : undefined
    }, 'it says no')
    assert.match(failed.stdout, /would NOT come back[\s\S]*tokens +FAILED +no token is kept for default\/q/)
    await site.edge.end()
    const over = await check()
    assert.equal(over.code, 2)
    assert.match(over.stderr, /^ake: no ake runs on /)
  }))
