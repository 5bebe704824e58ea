/**
 * What a join leaves on the disk of an edge. Each file is whole or absent; the credential comes last, so that where it is the rest is too. A file
 * with options of `ake edge` is the operator's once it is there.
 */
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UsageError } from '../base/fault.ts'
import type { KeyPair } from '../pki/certificate.ts'
import { clusterCaName, credentialText, nodeNamedBy, parseCredential } from '../pki/credentialfile.ts'
import { kubeletKubeconfig } from '../pki/kubeconfig.ts'
import { openPki } from '../pki/pki.ts'
import { createPrivateFile, makePrivateFolder, readPrivateFile, writePrivateFile } from '../pki/privatefile.ts'
import type { JoinedAuthorities, KeptKey } from './join.ts'

export type JoinedPlaces = {
  readonly data: string
  readonly kubeletKubeconfig: string
  readonly edgeConfig: string
}

export type EdgeWords = {
  readonly hubs: readonly string[]
  /** As `ake edge` is to listen; none: where it does by itself. */
  readonly listen: readonly string[]
  /** As the kubelet reaches it. */
  readonly server: string
}

/** A file, and what it is for. */
export type JoinedFile = { readonly path: string; readonly text: string; readonly about: string }

export class JoinedFiles {
  readonly #places: JoinedPlaces
  readonly #words: EdgeWords

  constructor(places: JoinedPlaces, words: EdgeWords) {
    this.#places = places
    this.#words = words
  }

  get credentialPath(): string {
    return join(this.#places.data, 'credential.pem')
  }

  get clusterCaPath(): string {
    return join(this.#places.data, clusterCaName)
  }

  get #edgeCa(): string {
    return join(this.#places.data, 'pki', 'ca.crt')
  }

  /** What an earlier join left: the pair and whose it is. Undefined: none, or nothing that could be used. */
  async present(): Promise<{ readonly pair: KeyPair; readonly node: string } | undefined> {
    const text = await readPrivateFile(this.credentialPath)
    if (text === undefined) return undefined
    try {
      const { pair, certificate } = parseCredential(text, this.credentialPath)
      const node = nodeNamedBy(certificate)
      return node === undefined ? undefined : { pair, node }
    } catch (error) {
      if (error instanceof UsageError) return undefined
      throw error
    }
  }

  /** Of a join that is not ended. */
  get key(): KeptKey {
    const path = join(this.#places.data, 'joining.key')
    return {
      read: async () => {
        const text = await readPrivateFile(path)
        return text?.includes('PRIVATE KEY') === true ? text : undefined
      },
      write: (key) => writePrivateFile(path, key),
      remove: () => rm(path, { force: true }),
    }
  }

  /** Before anything is requested: what could not be put away would be signed for nothing. */
  async makeFolders(): Promise<void> {
    const { data, kubeletKubeconfig: kubelet, edgeConfig } = this.#places
    await makePrivateFolder(data)
    await makePrivateFolder(dirname(kubelet), '--kubelet-kubeconfig')
    await makePrivateFolder(dirname(edgeConfig), '--edge-config')
  }

  /** Besides the credential. */
  plain({ cluster }: Pick<JoinedAuthorities, 'cluster'>): readonly JoinedFile[] {
    const { kubeletKubeconfig: path } = this.#places
    const { server } = this.#words
    const kubelet = kubeletKubeconfig({ server, ca: this.#edgeCa, credential: this.credentialPath })
    return [
      { path: this.clusterCaPath, text: cluster, about: "the cluster's authorities of clients, for --client-ca" },
      { path, text: kubelet, about: 'for the kubelet (--kubeconfig): it leads to the edge' },
    ]
  }

  /** What `ake edge` is to be told. */
  get config(): JoinedFile {
    const { hubs, listen } = this.#words
    const text = [
      ['hub', hubs],
      ['credential', this.credentialPath],
      ['client-ca', this.clusterCaPath],
      ['data', this.#places.data],
      ...(listen.length === 0 ? [] : [['listen', listen]]),
    ].map(([name, value]) => `${String(name)}: ${JSON.stringify(value)}\n`)
    return { path: this.#places.edgeConfig, text: text.join(''), about: 'options of "ake edge"' }
  }

  /** Answers whether the options are as they should be: a file that says something else stays as it is. */
  async write(authorities: JoinedAuthorities, joined: { pair: KeyPair; title: string; now: number }): Promise<boolean> {
    const { data } = this.#places
    const { pair, title, now } = joined
    // The kubelet's kubeconfig names the edge's own authority: it is made here if the edge never ran.
    await openPki({ folder: join(data, 'pki'), hosts: [], now })
    for (const { path, text } of this.plain(authorities)) await writePrivateFile(path, text)
    const { path, text } = this.config
    const isOurs = (await createPrivateFile(path, text)) || (await readPrivateFile(path)) === text
    await writePrivateFile(this.credentialPath, credentialText({ ca: authorities.hub, pair, title }))
    await this.key.remove()
    return isOurs
  }
}
