import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { DemoLine } from './line.ts'

/** Answers what it is told. */
async function withLine(body: (line: DemoLine, dial: () => Promise<Socket>) => Promise<void>): Promise<void> {
  const server = createServer((socket) => void socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const line = await DemoLine.open((server.address() as AddressInfo).port)
  try {
    await body(line, async () => {
      const socket = connect(line.port, '127.0.0.1')
      socket.on('error', () => {}).setEncoding('utf8')
      await once(socket, 'connect')
      return socket
    })
  } finally {
    await line.close()
    server.close()
  }
}

test('a line carries both ways and counts it; cut, what is open ends', () =>
  withLine(async (line, dial) => {
    const socket = await dial()
    socket.write('there')
    assert.deepEqual(await once(socket, 'data'), ['there'])
    assert.equal(line.bytes, 10)
    const closed = once(socket, 'close')
    line.cut()
    assert.equal(line.isCut, true)
    await closed
    assert.equal(line.bytes, 10)
  }))

test('what dials while the line is cut hears nothing, and goes on once it is mended', () =>
  withLine(async (line, dial) => {
    line.cut()
    const [socket, impatient] = [await dial(), await dial()]
    let heard = ''
    socket.on('data', (text: string) => {
      heard += text
    })
    socket.write('waits')
    impatient.destroy()
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(heard, '')
    assert.equal(line.bytes, 0)
    line.mend()
    assert.equal(line.isCut, false)
    await once(socket, 'data')
    assert.equal(heard, 'waits')
  }))
