/** How long a server asks to be left alone (RFC 9110, Retry-After): whole seconds, or a date. */

/** No server is obeyed for longer, in ms: one that says a year is looked at again after this. */
export const retryAfterMsMax = 5 * 60_000

/** 0 for what is missing, past or not as HTTP has it; never more than the limit. */
export function retryAfterMs(value: unknown, nowMs: number): number {
  const text = String(Array.isArray(value) ? value[0] : (value ?? '')).trim()
  const askedMs = /^\d+$/.test(text) ? 1000 * Number(text) : dateMs(text) - nowMs
  return Number.isNaN(askedMs) ? 0 : Math.min(retryAfterMsMax, Math.max(0, askedMs))
}

/** The three spellings of a date in HTTP begin with a day of the week and, said or not, mean GMT. */
function dateMs(text: string): number {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return Number.NaN
  return Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`)
}
