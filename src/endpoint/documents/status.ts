/** What `ake status` shows: this process and what it mirrors, for the administrator of its machine. */
import type { ApiRequest } from '../../kube/request.ts'
import { plain } from '../answer/respond.ts'
import type { NonResourcePaths, Response } from '../endpoint.ts'
import { statusPath } from '../ownpaths.ts'

export class StatusPath implements NonResourcePaths {
  readonly #status: () => unknown

  constructor(status: () => unknown) {
    this.#status = status
  }

  answer({ path }: ApiRequest): Response | undefined {
    if (path !== statusPath) return undefined
    return plain(200, Buffer.from(`${JSON.stringify(this.#status())}\n`))
  }
}
