/** From when on the end of a credential is spoken of: it should have been renewed by then, and there is time to see why it was not. */

type Lasting = { readonly beganAtMs?: number | undefined; readonly endsAtMs?: number | undefined }

/** A visit to a far site takes days to arrange. */
const weekMs = 7 * 24 * 3_600_000
/**
 * Of its life, what is left when its end is near: edges ask for another certificate after seven to eight tenths, and again where that failed. So one that
 * a cluster signs for a week or less is not near its end from the first day on.
 */
const lifeLeft = 0.15

/** Undefined: it has no end that is known. Of what an edge does not renew by itself, and so has no beginning here, the week counts. */
export function nearEndAtMs({ beganAtMs, endsAtMs }: Lasting): number | undefined {
  if (endsAtMs === undefined) return undefined
  const lifeMs = beganAtMs === undefined ? Number.POSITIVE_INFINITY : endsAtMs - beganAtMs
  return endsAtMs - Math.min(weekMs, Math.max(0, lifeMs) * lifeLeft)
}
