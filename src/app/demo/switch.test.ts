import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Unavailable, UsageError } from '../../base/fault.ts'
import { openSwitch, turnSwitch } from './switch.ts'

/** A temporary folder of its own, so that no other demo of this machine is met. */
async function withTemporary(
  body: (begin: (name: string) => Promise<{ folder: string; server: Server }>) => Promise<void>,
) {
  const before = process.env.TMPDIR
  const root = mkdtempSync(join(tmpdir(), 'ake-switch-'))
  const servers: Server[] = []
  process.env.TMPDIR = root
  try {
    await body(async (name) => {
      const folder = join(root, `ake-demo-${name}`)
      mkdirSync(folder)
      const server = await openSwitch(folder, (word) => `${name}: ${word}`)
      servers.push(server)
      return { folder, server }
    })
  } finally {
    for (const server of servers) server.close()
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    rmSync(root, { recursive: true, force: true })
  }
}

test('the switch of the one demo that runs is found, whatever others left behind', () =>
  withTemporary(async (begin) => {
    await assert.rejects(turnSwitch('cut', undefined), (error) => {
      assert.ok(error instanceof Unavailable)
      assert.match(error.message, /^no demo of yours runs under \S+: start one with "ake demo"/)
      return true
    })
    const { folder } = await begin('a')
    mkdirSync(join(folder, '..', 'ake-demo-left'))
    mkdirSync(join(folder, '..', 'ake-demo-stale'))
    writeFileSync(join(folder, '..', 'ake-demo-stale', 'switch'), '')
    writeFileSync(join(folder, '..', 'ake-demo-file'), '')
    assert.equal(await turnSwitch('cut', undefined), 'a: cut\n')
    assert.equal(await turnSwitch('mend', folder), 'a: mend\n')
    await assert.rejects(turnSwitch('mend', join(folder, '..', 'ake-demo-left')), /no demo of yours runs in .*left/)
  }))

test('of two demos the folder says which, and neither is turned without it', () =>
  withTemporary(async (begin) => {
    const [a, b] = [await begin('a'), await begin('b')]
    await assert.rejects(turnSwitch('cut', undefined), (error) => {
      assert.ok(error instanceof UsageError)
      assert.match(
        error.message,
        /^2 demos run: say which by its folder, "ake demo cut \S+ake-demo-[ab]" or "ake demo cut/,
      )
      return true
    })
    assert.equal(await turnSwitch('cut', a.folder), 'a: cut\n')
    assert.equal(await turnSwitch('cut', b.folder), 'b: cut\n')
    b.server.close()
    assert.equal(await turnSwitch('mend', undefined), 'a: mend\n')
  }))

test('a switch takes its words and nothing else', () =>
  withTemporary(async (begin) => {
    const { folder } = await begin('a')
    const socket = connect(join(folder, 'switch'))
    socket.write('cut the line\n')
    assert.equal((await once(socket.setEncoding('utf8').resume(), 'close'))[0], false)
    assert.equal(socket.bytesRead, 0)
  }))

test('a temporary folder whose path is too long for a socket is named', async () => {
  await assert.rejects(
    openSwitch(`/tmp/${'x'.repeat(110)}`, () => ''),
    /too long a path for a socket: set TMPDIR/,
  )
})
