/** The string formats a custom resource's schema may name; any other is ignored, as kube-apiserver does. */

import { isIPv4, isIPv6 } from 'node:net'
import { parseGoDuration } from '../json/gotext.ts'

const BY_NAME: Readonly<Record<string, (text: string) => boolean>> = {
  bsonobjectid: (text) => /^[0-9A-Fa-f]{24}$/.test(text),
  uri: isRequestUri,
  email: isEmail,
  hostname: isHostname,
  ipv4: (text) => isIp(unpadded(text)) && text.includes('.'),
  ipv6: (text) => isIp(text) && text.includes(':'),
  cidr: isCidr,
  mac: isMac,
  uuid: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
  uuid3: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
  uuid4: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i.test(text),
  uuid5: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i.test(text),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: (text) => text.length === 11 && /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text),
  hexcolor: (text) => /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text),
  rgbcolor: isRgbColor,
  byte: (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text),
  password: () => true,
  date: isDate,
  duration: (text) => parseDuration(text) !== undefined,
  datetime: isDateTime,
  k8sshortname: (text) => text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text),
  k8slongname: isLongName,
}

/** Formats of texts that may be long. */
const LONG: ReadonlySet<string> = new Set(['byte', 'email', 'password', 'uri'])
/** Longest text of any other format, in characters: reading them takes a microsecond for each. */
const SHORT_MAX = 10_000

/** The check behind a format name, dashes ignored; undefined for a format that API servers do not check. */
export function stringFormat(name: string): ((text: string) => boolean) | undefined {
  const normal = name.replaceAll('-', '')
  const check = Object.hasOwn(BY_NAME, normal) ? BY_NAME[normal] : undefined
  if (check === undefined || LONG.has(normal)) return check
  return (text) => text.length <= SHORT_MAX && check(text)
}

/** The format a schema node is held to, or '' where it is one the server does not know for that type. */
export function effectiveFormat(type: string | undefined, format: string | undefined): string {
  if (format === undefined || format === '') return ''
  if (type === undefined || type === '' || type === 'string') return stringFormat(format) === undefined ? '' : format
  if (type === 'integer') return format === 'int32' || format === 'int64' ? format : ''
  if (type === 'number') return format === 'float' || format === 'double' ? format : ''
  return ''
}

function isLongName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text)
}

/** Go parses no zones here; Node would. */
export function isIp(text: string): boolean {
  return !text.includes('%') && (isIPv4(text) || isIPv6(text))
}

/** Leading zeros in an IPv4 address are tolerated where old clusters accepted them. */
function unpadded(text: string): string {
  return text.includes(':') ? text : text.replace(/(^|\.)0+(?=\d)/g, '$1')
}

function isCidr(text: string): boolean {
  const slash = text.lastIndexOf('/')
  if (slash === -1) return false
  const address = unpadded(text.slice(0, slash))
  const bits = text.slice(slash + 1)
  return isIp(address) && /^\d{1,3}$/.test(bits) && Number(bits) <= (isIPv4(address) ? 32 : 128)
}

function isMac(text: string): boolean {
  return (
    /^[0-9a-f]{2}(([:-])[0-9a-f]{2})(\2[0-9a-f]{2}){4}((\2[0-9a-f]{2}){2}|(\2[0-9a-f]{2}){14})?$/i.test(text) ||
    /^[0-9a-f]{4}(\.[0-9a-f]{4}){2}((\.[0-9a-f]{4}){1}|(\.[0-9a-f]{4}){7})?$/i.test(text)
  )
}

function isHostname(text: string): boolean {
  const pattern =
    /^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$/u
  // The length first: on a long text the pattern would try many ways to part it.
  return Buffer.byteLength(text) <= 255 && pattern.test(text) && text.split('.').every((label) => label.length <= 63)
}

/** An RFC 5322 address, bare or after a display name, as far as people write them. */
function isEmail(text: string): boolean {
  const trimmed = text.trim()
  const bare = /^(?:"[^"]*"\s*|[^"<>@,;:()[\]\\]*)<([^<>]+)>$/.exec(trimmed)?.[1] ?? trimmed
  const atom = "[\\w!#$%&'*+/=?^`{|}~\\u0080-\\uffff-]+"
  return new RegExp(`^(?:${atom}(?:\\.${atom})*|"[^"\\n]+")@(?:${atom}(?:\\.${atom})*|\\[[^\\[\\]\\s]+\\])$`).test(bare)
}

/** An absolute URI or an absolute path. */
function isRequestUri(text: string): boolean {
  if (text === '' || /[\p{Cc} ]/u.test(text.split('?')[0] ?? '') || /%(?![0-9A-Fa-f]{2})/.test(text))
    return text === '*'
  if (text.startsWith('/')) return true
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)
  if (scheme === null) return text === '*'
  if (!text.startsWith('//', scheme[0].length)) return true
  const authority = text.slice(scheme[0].length + 2).split(/[/?]/)[0] ?? ''
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  return /^(\[[^\]]*\]|[^[\]<>"^`{|}\\:]*)(:\d*)?$/.test(host)
}

function isRgbColor(text: string): boolean {
  const part = '(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])'
  return new RegExp(`^rgb\\(\\s*${part}\\s*,\\s*${part}\\s*,\\s*${part}\\s*\\)$`).test(text)
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '')
  if (!/^(?:\d{9}X|\d{10})$/.test(digits)) return false
  let sum = 0
  for (let at = 0; at < 10; at++) sum += (at + 1) * (digits[at] === 'X' ? 10 : Number(digits[at]))
  return sum % 11 === 0
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '')
  if (!/^\d{13}$/.test(digits)) return false
  let sum = 0
  for (let at = 0; at < 12; at++) sum += (at % 2 === 0 ? 1 : 3) * Number(digits[at])
  return Number(digits[12]) === (10 - (sum % 10)) % 10
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]+/g, '')
  const issuers =
    /^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$/
  if (!issuers.test(digits)) return false
  let sum = 0
  for (const [index, digit] of [...digits].reverse().entries()) {
    const doubled = index % 2 === 1 ? Number(digit) * 2 : Number(digit)
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

function isDate(text: string): boolean {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (parts === null) return false
  const [year, month, day] = parts.slice(1).map(Number) as [number, number, number]
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

function isDateTime(text: string): boolean {
  const [date, time] = text.toLowerCase().split('t')
  if (date === undefined || time === undefined || !isDate(date)) return false
  const parts = /^(\d{2}):(\d{2}):(\d{2})(.\d+)?(z|[+-]\d{2}:\d{2})$/.exec(time)
  return parts !== null && Number(parts[1]) <= 23 && Number(parts[2]) <= 59 && Number(parts[3]) <= 59
}

const WORD_UNITS: ReadonlyArray<readonly [factor: number, exact: readonly string[], prefix: string]> = [
  [1, ['ns'], 'nano'],
  [1e3, ['us', 'µs'], 'micro'],
  [1e6, ['ms'], 'milli'],
  [1e9, ['s'], 'sec'],
  [60e9, ['m'], 'min'],
  [3600e9, ['h', 'hr'], 'hour'],
  [24 * 3600e9, ['d'], 'day'],
  [7 * 24 * 3600e9, ['w', 'wk'], 'week'],
]

/** Nanoseconds of `1h30m`, or of `3 days`; undefined where it is neither. */
export function parseDuration(text: string): number | undefined {
  const go = parseGoDuration(text)
  if ('ns' in go) return go.ns
  let sum: number | undefined
  for (const part of text.matchAll(/(?<!\d)(\d+)\s*([A-Za-zµ]+)/g)) {
    const unit = (part[2] ?? '').toLowerCase()
    const found = WORD_UNITS.find(([, exact, prefix]) => exact.includes(unit) || unit.startsWith(prefix))
    if (found !== undefined) sum = (sum ?? 0) + Number(part[1]) * found[0]
  }
  return sum
}
