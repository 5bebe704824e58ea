/** Addresses that never leave this machine. */
import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** Whether a text is such an address, an IPv4 one written as IPv6 included; a name is none. */
export function isLoopback(text: string): boolean {
  const family = isIP(text)
  return family !== 0 && loopback.check(text, family === 6 ? 'ipv6' : 'ipv4')
}
