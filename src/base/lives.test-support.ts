/**
 * How often tests that live random lives do so. Every run has seeds of its own, so that few lives in each of many runs find
 * what many in one would: `npm test` lives a part of them, the gate (`npm run check`) all; AKE_LIVES is a factor of ours.
 */
const factor = Number(process.env.AKE_LIVES ?? 1)

export function lives(all: number): number {
  return Math.max(1, Math.round(all * factor))
}
