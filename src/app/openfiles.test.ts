import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionsWithin } from './openfiles.ts'

const limits = (soft: string) => `Limit                     Soft Limit           Hard Limit           Units     
Max processes             1024                 1024                 processes 
Max open files            ${soft.padEnd(20)} 1048576              files     
`

test('[A8] there are never more connections than files for them and for the store', () => {
  const rows: [string | undefined, number][] = [
    [limits('1048576'), 4_096],
    [limits('unlimited'), 4_096],
    [undefined, 4_096],
    ['nonsense', 4_096],
    [limits('4096'), 1_920],
    [limits('1024'), 384],
    [limits('256'), 64],
  ]
  for (const [text, connections] of rows) assert.equal(connectionsWithin(text), connections, `${text}`)
})
