/** The sockets of a hub with nothing behind them, as a process of its own for `hublink.ts`: `node bench/hubserver.ts DIR`. */

import { systemClock } from '../src/base/clock.ts'
import { createLog } from '../src/base/log.ts'
import { HubListener } from '../src/hub/sockets/listener.ts'
import { hubPair } from '../src/hub/state/certificates.ts'
import { FolderState } from '../src/hub/state/folderstate.ts'
import { KeptState } from '../src/hub/state/keptstate.ts'

const clock = systemClock
const log = createLog({ level: 'warn' })
const kept = await KeptState.open({ store: new FolderState(process.argv[2] ?? ''), clock, log })
const serving = () => hubPair(kept.current, ['127.0.0.1'], clock.now())
const listener = new HubListener({
  addresses: [{ host: '127.0.0.1', port: 0 }],
  state: kept.current,
  serving: serving(),
  clock,
  log,
  // What is measured is a handshake and not the line before it.
  limits: { fullPerSecond: 2_000, resumedPerSecond: 2_000 },
  accepted: (link) =>
    link.begin({ frame: (frame) => void link.send(Buffer.from(frame)), ready: () => {}, closed: () => {} }),
})
kept.observe(() => listener.setState(kept.current, serving()))
const [at] = await listener.listen()
process.send?.({ port: at?.port })
const ending = new AbortController()
process.once('disconnect', () => ending.abort())
await kept.run(ending.signal)
await listener.close('the measurement is over')
