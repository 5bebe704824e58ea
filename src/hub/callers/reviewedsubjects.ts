/** The subjects about which the API server has told the node of a link over that link: of these, besides its callers, an edge may hear the rules. */
import { subjectKey } from '../../access/rbac/subjectrules.ts'
import { type ReviewedSubject, reviewedSubject } from '../../kube/reviewedsubject.ts'
import { rulesLimits } from './ruleslimits.ts'

const path = /^\/apis\/authorization\.k8s\.io\/v1\/subjectaccessreviews(?:\?|$)/
/** Of a review that is read as it passes by: one with thousands of groups is passed on like any other. */
const reviewBytesMax = 64 * 1024
/** Of an API server that has reviewed; it says 201. */
const reviewing: ReadonlySet<number> = new Set([200, 201])

type AskedReview = {
  readonly method: string
  readonly path: string
  readonly contentType: string | undefined
  readonly body: AsyncIterable<Buffer>
}

/** As it goes on. */
type OverheardReview = {
  readonly body: AsyncIterable<Buffer>
  /** The API server has answered: only a node that it lets review a subject may hear of that. */
  readonly answered: (status: number) => void
}

export class ReviewedSubjects {
  /** By link, the one asked about longest ago first. */
  readonly #subjects = new WeakMap<object, Set<string>>()

  /** A node's request: a review is listened to, and its answer. */
  overhear(link: object, { method, path: asked, contentType, body }: AskedReview): OverheardReview {
    if (method !== 'POST' || !path.test(asked)) return { body, answered: () => undefined }
    let subject: ReviewedSubject | undefined
    return {
      body: overheard(body, (bytes) => {
        subject = reviewedSubject(contentType, bytes)
      }),
      answered: (status) => {
        if (subject !== undefined && reviewing.has(status)) this.#note(link, subject)
      },
    }
  }

  has(link: object, subject: ReviewedSubject): boolean {
    return this.#subjects.get(link)?.has(subjectKey(subject)) === true
  }

  #note(link: object, subject: ReviewedSubject): void {
    const known = this.#subjects.get(link) ?? new Set()
    this.#subjects.set(link, known)
    const key = subjectKey(subject)
    known.delete(key)
    known.add(key)
    if (known.size > rulesLimits.reviewedMax) known.delete(known.values().next().value as string)
  }
}

async function* overheard(body: AsyncIterable<Buffer>, heard: (bytes: Buffer) => void): AsyncGenerator<Buffer, void> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of body) {
    size += piece.length
    if (size <= reviewBytesMax) pieces.push(piece)
    yield piece
  }
  if (size <= reviewBytesMax) heard(Buffer.concat(pieces))
}
