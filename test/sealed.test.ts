/** What lies in a data folder after a kill, with a key and without one; a key that appears, is wrong, or is missing. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { start, statusOf, withFolderHere, withSite } from './edgeprocess.ts'
import { Client, runAke, type Serving } from './process.ts'

const marker = `marker-${randomBytes(9).toString('hex')}`
const forms = [marker, Buffer.from(marker).toString('base64')]
const secretPath = '/api/v1/namespaces/default/secrets'

function makeKey(path: string): string {
  writeFileSync(path, `# of this test\n${randomBytes(32).toString('base64')}\n`, { mode: 0o600 })
  return path
}

function filesUnder(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}

/** The files that hold the marker in any form. */
function found(folder: string): string[] {
  return filesUnder(folder).filter((path) => {
    const bytes = readFileSync(path)
    return forms.some((form) => bytes.includes(form))
  })
}

/** Of everything that the store wrote. */
function digest(folder: string): string {
  const hash = createHash('sha256')
  const stored = filesUnder(folder).filter((path) => /ake\.|\/log\//.test(path))
  for (const path of stored.sort()) hash.update(path).update(readFileSync(path))
  return hash.digest('hex')
}

async function write(serving: Serving, names: readonly string[]): Promise<void> {
  const client = new Client(serving)
  for (const name of names) {
    const metadata = { name, namespace: 'default' }
    await client.json('POST', secretPath, { metadata, data: { password: forms[1] } })
    await client.json('POST', '/api/v1/namespaces/default/configmaps', { metadata, data: { text: marker } })
  }
  client.close()
}

async function check(serving: Serving, names: readonly string[]): Promise<void> {
  const client = new Client(serving)
  for (const name of names) {
    const { data } = await client.json<{ data: Record<string, string> }>('GET', `${secretPath}/${name}`)
    assert.equal(data.password, forms[1])
  }
  client.close()
}

async function unsealed(serving: Serving): Promise<number> {
  const client = new Client(serving)
  const { body } = await client.ask('GET', '/metrics')
  client.close()
  return Number(/^ake_store_unsealed_segments (\d+)$/m.exec(body.toString())?.[1] ?? Number.NaN)
}

/** Everything is its owner's alone. */
function checkModes(folder: string): void {
  const paths = [folder, ...readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name)))]
  for (const path of paths) {
    const found = statSync(path)
    assert.equal((found.mode & 0o777).toString(8), found.isDirectory() ? '700' : '600', path)
  }
}

/** What is killed is one. */
const asProcess = ['serve', '--listen', '127.0.0.1:0']

function refusal(args: readonly string[]): Promise<{ code: number | null; stderr: string }> {
  return runAke([...args, '--listen', '127.0.0.1:0']).ended
}

test('[I4] a killed server leaves Secrets in clear without a key, and nowhere with one', async () => {
  for (const isSealed of [false, true]) {
    await withFolderHere(async (folder, serve) => {
      const keyFile = `${folder}.key`
      try {
        const options = isSealed ? ['--encryption-key', makeKey(keyFile)] : []
        const first = await start(folder, [...asProcess, ...options])
        await write(first, ['one', 'two'])
        await first.end('SIGKILL')
        assert.equal(found(folder).length > 0, !isSealed, found(folder).join())
        const second = await serve(...options)
        await check(second, ['one', 'two'])
        assert.equal(await unsealed(second), isSealed ? 0 : Number.NaN)
      } finally {
        rmSync(keyFile, { force: true })
      }
    })
  }
})

test('[I4] a folder in clear is sealed while it serves once a key appears; without the right key it is refused and stays as it is', () =>
  withFolderHere(async (folder, serve) => {
    const [keyFile, otherFile] = [`${folder}.key`, `${folder}.other`]
    try {
      const plain = await serve()
      await write(plain, ['one', 'two'])
      await plain.end()
      assert.notDeepEqual(found(folder), [])
      const sealing = await start(folder, [...asProcess, '--encryption-key', makeKey(keyFile)])
      await write(sealing, ['three'])
      await until(async () => (await unsealed(sealing)) === 0, 'everything is sealed')
      assert.deepEqual(found(folder), [])
      await sealing.end('SIGKILL')
      assert.deepEqual(found(folder), [])

      const before = digest(folder)
      const missing = await refusal(['serve', '--data', folder])
      assert.equal(missing.code, 2, missing.stderr)
      assert.match(missing.stderr, /is sealed with the key [0-9a-f]{8}, and none was given: give .*--encryption-key/)
      const wrong = await refusal(['serve', '--data', folder, '--encryption-key', makeKey(otherFile)])
      assert.equal(wrong.code, 2, wrong.stderr)
      assert.match(wrong.stderr, /not among those given \([0-9a-f]{8}\)/)
      const gone = await refusal(['serve', '--data', folder, '--encryption-key', `${folder}.gone`])
      assert.equal(gone.code, 2, gone.stderr)
      assert.match(gone.stderr, /cannot read .*no such file/)
      assert.equal(digest(folder), before)

      // Another key takes over: the first line seals, the second opens.
      const [first, second] = [otherFile, keyFile].map((path) => readFileSync(path, 'utf8'))
      writeFileSync(otherFile, `${first}${second}`)
      const again = await start(folder, [...asProcess, '--encryption-key', otherFile])
      await check(again, ['one', 'two', 'three'])
      await until(async () => (await unsealed(again)) === 0, 'everything is sealed anew')
      await again.end('SIGKILL')
      writeFileSync(otherFile, first as string)
      await check(await serve('--encryption-key', otherFile), ['one', 'two', 'three'])
      assert.deepEqual(found(folder), [])
    } finally {
      for (const path of [keyFile, otherFile]) rmSync(path, { force: true })
    }
  }))

test('[I4] an edge with a key has nothing in clear and says so; with a wrong key it neither starts nor drops its mirror; its files are its own', () =>
  withSite(['--mirror', 'secrets', '--mirror', 'configmaps'], async (site) => {
    await write(site.cloud, ['one'])
    await until(async () => {
      const { status } = await site.administrator().ask('GET', `${secretPath}/one`)
      return status === 200 && found(site.edgeFolder).length > 0
    }, 'the Secret is mirrored, in clear')
    assert.match(await statusOf(site.edgeFolder), /Store: .*, plain\n/)
    await site.edge.end('SIGKILL')

    const keyFile = makeKey(join(site.folder, 'key'))
    const options = ['--mirror', 'secrets', '--mirror', 'configmaps', '--encryption-key']
    await site.startEdge(...options, keyFile)
    await until(async () => /Store: .*, sealed\n/.test(await statusOf(site.edgeFolder)), 'the store is sealed')
    assert.deepEqual(found(site.edgeFolder), [])
    await site.edge.end('SIGKILL')
    site.isEdgeProcess = false
    await site.link.set('refuse')

    const before = digest(site.edgeFolder)
    const wrong = makeKey(join(site.folder, 'wrong'))
    const edge = ['edge', '--data', site.edgeFolder, '--kubeconfig', site.kubeconfig]
    for (const more of [[], ['--encryption-key', wrong]]) {
      const { code, stderr } = await refusal([...edge, ...more])
      assert.equal(code, 2, stderr)
      assert.match(stderr, /is sealed with the key/)
      assert.ok(!existsSync(join(site.edgeFolder, 'aside')))
      assert.equal(digest(site.edgeFolder), before)
    }
    await site.startEdge(...options, keyFile)
    await check(site.edge, ['one'])
    for (const folder of [site.edgeFolder, site.cloudFolder]) checkModes(folder)
  }))

test('[I4] the unit keeps secrets out of core files and swap', () => {
  const unit = readFileSync(join(import.meta.dirname, '..', 'deploy', 'edge.service'), 'utf8')
  for (const line of ['LimitCORE=0', 'MemorySwapMax=0', 'UMask=0077', 'StateDirectoryMode=0700']) {
    assert.match(unit, new RegExp(`^${line}$`, 'm'))
  }
})
