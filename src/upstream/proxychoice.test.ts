import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proxyFor } from './proxychoice.ts'

const proxy = 'http://proxy.site:3128'
const chosen = (server: string, environment: Record<string, string>, proxyUrl?: string) =>
  proxyFor(new URL(server), { environment, proxyUrl })?.name

test('the environment names a proxy in either case, with or without a scheme, the upper case first', () => {
  assert.equal(chosen('https://api:6443', { HTTPS_PROXY: proxy }), proxy)
  assert.equal(chosen('https://api:6443', { https_proxy: 'proxy.site:3128' }), proxy)
  assert.equal(chosen('https://api:6443', { https_proxy: 'http://other', HTTPS_PROXY: proxy }), proxy)
  assert.equal(chosen('https://api:6443', { https_proxy: proxy, HTTPS_PROXY: '' }), proxy)
  assert.equal(chosen('https://api:6443', { HTTP_PROXY: proxy, ALL_PROXY: proxy }), undefined)
  assert.equal(chosen('https://api:6443', {}), undefined)
})

test('each kind has its port, and a credential is read as it was written and not shown', () => {
  assert.equal(chosen('https://api', { HTTPS_PROXY: 'http://p' }), 'http://p:80')
  assert.equal(chosen('https://api', { HTTPS_PROXY: 'https://p' }), 'https://p:443')
  assert.equal(chosen('https://api', { HTTPS_PROXY: 'socks5://p' }), 'socks5://p:1080')
  assert.equal(chosen('https://api', { HTTPS_PROXY: 'socks5h://[fd00::1]' }), 'socks5://[fd00::1]:1080')
  const found = proxyFor(new URL('https://api'), { proxyUrl: 'http://us%40er:p%3Aass@p:1' })
  assert.deepEqual(found, { kind: 'http', host: 'p', port: 1, name: 'http://p:1', user: 'us@er', password: 'p:ass' })
})

test('what exempts a server is what golang.org/x/net/http/httpproxy takes for it', () => {
  const cases: [noProxy: string, server: string, isExempt: boolean][] = [
    ['', 'https://api.cloud:6443', false],
    ['*', 'https://api.cloud:6443', true],
    ['other, *', 'https://10.0.0.1', true],
    ['api.cloud', 'https://API.cloud:6443', true],
    ['cloud', 'https://api.cloud:6443', true],
    ['loud', 'https://api.cloud:6443', false],
    ['.cloud', 'https://api.cloud:6443', true],
    ['.cloud', 'https://cloud:6443', false],
    ['*.cloud', 'https://api.cloud', true],
    ['*.cloud', 'https://cloud', false],
    ['cloud:6443', 'https://api.cloud:6443', true],
    ['cloud:443', 'https://api.cloud', true],
    ['cloud:443', 'https://api.cloud:6443', false],
    [':6443', 'https://api.cloud:6443', false],
    [' , ,api.cloud , x', 'https://api.cloud', true],
    ['10.0.0.1', 'https://10.0.0.1:6443', true],
    ['10.0.0.1:443', 'https://10.0.0.1:6443', false],
    ['10.0.0.1:6443', 'https://10.0.0.1:6443', true],
    ['10.0.0.2', 'https://10.0.0.1:6443', false],
    ['10.0.0.0/8', 'https://10.200.3.4:6443', true],
    ['10.9.9.9/8', 'https://10.200.3.4:6443', true],
    ['10.0.0.0/16', 'https://10.200.3.4:6443', false],
    ['10.0.0.0/99', 'https://10.0.0.0', false],
    ['0.0.0.1', 'https://a0.0.0.1x', false],
    ['fd00::/8', 'https://[fd12::1]:6443', true],
    ['fd00::1', 'https://[fd00:0::1]', true],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443', true],
    ['[fd00::1]:6443', 'https://[fd00::1]', false],
    ['::ffff:10.0.0.1', 'https://10.0.0.1', true],
    ['10.0.0.0/8', 'https://[::ffff:10.1.1.1]', true],
    ['', 'https://localhost:6443', true],
    ['', 'https://127.8.8.8:6443', true],
    ['', 'https://[::1]:6443', true],
    ['', 'https://localhost.cloud', false],
  ]
  for (const [noProxy, server, isExempt] of cases) {
    for (const name of ['NO_PROXY', 'no_proxy'])
      assert.equal(
        chosen(server, { HTTPS_PROXY: proxy, [name]: noProxy }) === undefined,
        isExempt,
        `${noProxy} ${server}`,
      )
  }
})

test("the kubeconfig's proxy-url wins over all of it, for servers on this machine too", () => {
  const environment = { HTTPS_PROXY: 'http://other:1', NO_PROXY: '*' }
  assert.equal(chosen('https://api', environment, proxy), proxy)
  assert.equal(chosen('https://127.0.0.1:6443', {}, proxy), proxy)
})

test('[I4] what names no proxy is refused by where it stands, quoting nothing of it', () => {
  for (const wrong of ['ftp://secret@p', 'http://', 'http://secret:%zz@p', 'nothing here', 'http://u:secret@p:99999'])
    assert.throws(
      () => chosen('https://api', { https_proxy: wrong }),
      (error: Error) =>
        /^https_proxy (names no proxy|holds a credential)/.test(error.message) && !/secret/.test(error.message),
      wrong,
    )
  assert.throws(
    () => chosen('https://api', {}, 'proxy:3128'),
    /^Error: the kubeconfig's proxy-url names no proxy: give http/,
  )
  assert.throws(() => chosen('https://api', {}, `socks5://u:${'s'.repeat(256)}@p`), /cannot be sent/)
  // One that would not be used is no one's trouble.
  assert.equal(chosen('https://localhost', { HTTPS_PROXY: 'ftp://p' }), undefined)
})
