/** Why something did not get through, in a few words for people. Built from error codes only: messages may hold anything. */

const texts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection closed',
  ETIMEDOUT: 'no answer to the connection attempt',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network is unreachable',
  ENETDOWN: 'the network is down',
  EADDRNOTAVAIL: 'this machine has no address for it',
  EMFILE: 'this process has too many open files',
  ENOTFOUND: 'its name is not known',
  EAI_AGAIN: 'its name cannot be looked up now',
  CERT_HAS_EXPIRED: 'its certificate has expired (or the clock of this machine is wrong)',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet (or the clock of this machine is wrong)',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  EPROTO: 'it does not speak TLS as expected',
}

const unknownAuthority =
  /^(UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)|(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT)|CERT_(SIGNATURE_FAILURE|UNTRUSTED|REJECTED)|INVALID_CA)$/

/** A dial that failed before it reached the API server, in words of our own: they hold no credential. */
export class DialFault extends Error {
  readonly certain: boolean

  constructor(why: string, certain: boolean) {
    super(why)
    this.certain = certain
  }
}

export function reasonOf(error: unknown): string {
  if (error instanceof DialFault) return error.message
  const code = codeOf(error)
  const known = texts[code]
  if (known !== undefined) return known
  if (unknownAuthority.test(code)) return 'its certificate is not signed by the authority of the kubeconfig'
  if (/^ERR_SSL_.*ALERT/.test(code)) return `TLS was refused (${code.slice(8).toLowerCase().replaceAll('_', ' ')})`
  if (code.startsWith('ERR_SSL_')) return 'it does not speak TLS as expected'
  if (code.startsWith('ERR_HTTP2_')) return `HTTP/2 broke off (${code.slice(10).toLowerCase().replaceAll('_', ' ')})`
  if (code.startsWith('HPE_')) return 'it does not speak HTTP as expected'
  return code === '' ? 'connection closed' : `connection failed (${code})`
}

/** Refused or reset: the other end said no at once, so there is no point in asking a second time before believing it. */
export function isCertain(error: unknown): boolean {
  if (error instanceof DialFault) return error.certain
  return /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENETDOWN)$/.test(codeOf(error))
}

/** A name with several addresses fails with an error for each. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0])
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}
