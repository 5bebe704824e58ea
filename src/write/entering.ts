/**
 * Counts creations under way by the place they create in: a namespace, or a custom resource. Whether the place still
 * takes them is seen before they commit, so the place may not be taken away in between.
 */

import { type GroupResource, groupResource } from '../kube/resource.ts'

export class Entering {
  readonly #counts = new Map<string, number>()

  async during<T>(places: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const place of places) this.#counts.set(place, this.count(place) + 1)
    try {
      return await work()
    } finally {
      for (const place of places) {
        const left = this.count(place) - 1
        if (left === 0) this.#counts.delete(place)
        else this.#counts.set(place, left)
      }
    }
  }

  count(place: string): number {
    return this.#counts.get(place) ?? 0
  }
}

export function namespacePlace(namespace: string): string {
  return `namespace\n${namespace}`
}

export function resourcePlace(resource: GroupResource): string {
  return `resource\n${groupResource(resource)}`
}
