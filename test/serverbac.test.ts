/** `ake serve --authorization rbac` as a process: tokens and roles over a restart, by its certificate and by tokens alone. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { withFolderHere } from './edgeprocess.ts'
import { Client, configMap, configMaps, type Serving } from './process.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const accounts = '/api/v1/namespaces/default/serviceaccounts'

type Issued = { readonly status: { readonly token: string } }

/** Without a certificate. */
class Bearer {
  readonly #client: Client
  readonly #headers: Record<string, string>

  constructor(serving: Serving, token?: string) {
    this.#client = new Client({
      url: serving.url,
      credentials: { ca: serving.credentials.ca } as Serving['credentials'],
    })
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  async status(method: string, path: string, body?: unknown): Promise<number> {
    return (await this.#client.ask(method, path, body, this.#headers)).status
  }

  close(): void {
    this.#client.close()
  }
}

test("[I2] a token has what is bound to its account, before and after a restart, and its key is its owner's alone", () =>
  withFolderHere(async (folder, serve) => {
    let serving = await serve('--authorization', 'rbac')
    const admin = new Client(serving)
    await admin.json('POST', accounts, { metadata: { name: 'robot' } })
    const { status } = await admin.json<Issued>('POST', `${accounts}/robot/token`, {})
    const { token } = status
    const robot = new Bearer(serving, token)
    assert.equal(await robot.status('GET', configMaps), 403)
    await admin.json('POST', `${rbac}/namespaces/default/rolebindings`, {
      metadata: { name: 'robot' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }],
    })
    assert.equal(await robot.status('POST', configMaps, configMap('a', {})), 201)
    assert.equal(await robot.status('GET', `${rbac}/clusterroles`), 403)
    const stranger = new Bearer(serving)
    assert.deepEqual([await stranger.status('GET', '/healthz'), await stranger.status('GET', configMaps)], [200, 403])
    assert.equal(statSync(join(folder, 'pki', 'accounts.key')).mode & 0o777, 0o600)
    const roles = await admin.json<{ metadata: { resourceVersion: string } }>('GET', `${rbac}/clusterroles`)
    for (const one of [admin, robot, stranger]) one.close()
    await serving.end('SIGTERM')

    serving = await serve('--authorization', 'rbac')
    const again = new Bearer(serving, token)
    assert.equal(await again.status('GET', `${configMaps}/a`), 200)
    assert.equal(await again.status('GET', '/api/v1/nodes'), 403)
    const back = new Client(serving)
    const { metadata } = await back.json<typeof roles>('GET', `${rbac}/clusterroles`)
    assert.equal(metadata.resourceVersion, roles.metadata.resourceVersion, 'a start writes no role anew')
    for (const one of [again, back]) one.close()
    await serving.end('SIGTERM')

    // Where roles do not count a token of its own is let in, and no other.
    serving = await serve()
    const open = new Bearer(serving, token)
    assert.equal(await open.status('GET', '/api/v1/nodes'), 200)
    const forged = new Bearer(serving, `${token.slice(0, -8)}AAAAAAAA`)
    assert.equal(await forged.status('GET', '/api/v1/nodes'), 401)
    for (const one of [open, forged]) one.close()
  }))
