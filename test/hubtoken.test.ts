/** `ake hub token` without `--hub`, over an API server: the address of the load balancer of the hubs' Service, or what to do where there is none. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { hubToken } from '../src/app/hub/token.ts'
import { Client, withFolder } from './process.ts'

const services = '/api/v1/namespaces/ake-system/services'

test('the outside address of the Service is what machines are told to join at, and until it has one --hub is asked for', () =>
  withFolder(async (folder, serve) => {
    const client = new Client(await serve())
    for (const name of ['ake-system', 'kube-system'])
      await client.ask('POST', '/api/v1/namespaces', { metadata: { name } })
    const config = {
      ...{ kubeconfig: join(folder, 'admin.kubeconfig'), server: [], state: { folder: join(folder, 'hub') }, hub: [] },
      ...{ service: { namespace: 'ake-system', name: 'ake-hub' }, ttl: 3_600_000 },
    } as unknown as Parameters<typeof hubToken>[0]
    const tokens = async () => {
      const list = await client.json<{ items: { metadata: { name: string } }[] }>(
        'GET',
        '/api/v1/namespaces/kube-system/secrets',
      )
      return list.items.filter(({ metadata }) => metadata.name.startsWith('bootstrap-token-')).length
    }
    await assert.rejects(
      hubToken(config),
      /the Service ake-system\/ake-hub cannot be read \(404\): give --hub wss:\/\/HOST:PORT/,
    )
    const ports = [
      { name: 'health', port: 10003 },
      { name: 'link', port: 8443 },
    ]
    await client.json('POST', services, { metadata: { name: 'ake-hub' }, spec: { type: 'LoadBalancer', ports } })
    await assert.rejects(hubToken(config), /has no address outside of the cluster yet: give --hub/)
    assert.equal(await tokens(), 0, 'no token is made that nobody is told')
    const joinedAt = async (ingress: object) => {
      const service = await client.json<object>('GET', `${services}/ake-hub`)
      await client.json('PUT', `${services}/ake-hub/status`, {
        ...service,
        status: { loadBalancer: { ingress: [ingress] } },
      })
      const printed = await hubToken(config)
      const [line] = /^ake join .*$/m.exec(printed) ?? []
      assert.match(line ?? '', / --token [a-z0-9]{6}\.[a-z0-9]{16} --ca-hash sha256:[0-9a-f]{64}$/)
      return / --hub (\S+)/.exec(line ?? '')?.[1]
    }
    assert.equal(await joinedAt({ ip: '192.0.2.7' }), 'wss://192.0.2.7:8443')
    assert.equal(await joinedAt({ ip: '2001:db8::7' }), 'wss://[2001:db8::7]:8443')
    assert.equal(await joinedAt({ hostname: 'hub.example.com', ip: '192.0.2.7' }), 'wss://hub.example.com:8443')
    assert.equal(await tokens(), 3)
    client.close()
  }))
