/** The order in which Go's YAML library prints the keys of an object: digits by value, and letters after everything else. */

/** Keys that are put in order at once: a millisecond or two. */
const stepKeys = 1_024

/** Many are put in order in steps: it yields an empty text after each, where its caller may let others have their turn. */
export function* inNaturalOrder(keys: string[]): Generator<string, string[], void> {
  if (keys.length <= stepKeys) return keys.sort(naturally)
  let runs: string[][] = []
  for (let at = 0; at < keys.length; at += stepKeys) {
    runs.push(keys.slice(at, at + stepKeys).sort(naturally))
    yield ''
  }
  while (runs.length > 1) {
    const merged: string[][] = []
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* mergeRuns(runs[at] ?? [], runs[at + 1] ?? []))
    runs = merged
  }
  return runs[0] ?? []
}

function* mergeRuns(left: readonly string[], right: readonly string[]): Generator<string, string[], void> {
  const merged: string[] = []
  let l = 0
  let r = 0
  while (l < left.length || r < right.length) {
    const [a, b] = [left[l], right[r]]
    const takesLeft = b === undefined || (a !== undefined && naturally(a, b) <= 0)
    if (takesLeft) l++
    else r++
    merged.push((takesLeft ? a : b) as string)
    if (merged.length % stepKeys === 0) yield ''
  }
  return merged
}

export function naturally(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  let at = 0
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  if (at > 0 && isSurrogate(a.charCodeAt(at - 1))) at--
  const l = a.codePointAt(at)
  const r = b.codePointAt(at)
  if (l === undefined || r === undefined || l === r) return a.length - b.length
  const leftIsLetter = isLetter(l)
  const rightIsLetter = isLetter(r)
  if (leftIsLetter && rightIsLetter) return l - r
  if (leftIsLetter || rightIsLetter) return leftIsLetter ? 1 : -1
  return byNumber(a, b, at) || l - r
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff
}

function isLetter(code: number): boolean {
  if (code > 0x7f) return /\p{L}/u.test(String.fromCodePoint(code))
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x7a
}

function byNumber(a: string, b: string, at: number): number {
  const l = a.slice(at, digitsEnd(a, at))
  const r = b.slice(at, digitsEnd(b, at))
  // A zero inside a number is a digit like any other: the digits before it, equal in both, must weigh in.
  const head = (a[at] === '0' || b[at] === '0') && hasValueBefore(a, at) ? '1' : ''
  return Number(head + l || 0) - Number(head + r || 0) || l.length - r.length
}

function digitsEnd(text: string, from: number): number {
  let end = from
  while (isDigit(text.charCodeAt(end))) end++
  return end
}

/** Whether a digit other than zero stands in the digits right before. */
function hasValueBefore(text: string, end: number): boolean {
  let at = end - 1
  while (text[at] === '0') at--
  return isDigit(text.charCodeAt(at))
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}
