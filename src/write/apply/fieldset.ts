/**
 * A set of paths, kept as a tree of steps. A step can be a member itself, lead to members below it, or both. What an
 * operation leaves as it is, its result shares with the given sets: none of them is changed once it has been made.
 */

import { compareElements, type Path, type PathElement } from './pathelement.ts'

export type FieldNode = {
  readonly element: PathElement
  /** Whether the path that ends here is in the set. */
  readonly member: boolean
  /** What is in the set below; never an empty one. */
  readonly children: FieldSet | undefined
}

type Growing = { element: PathElement; member: boolean; children: FieldSet | undefined }

export class FieldSet {
  readonly #nodes: Map<string, Growing>

  private constructor(nodes: Map<string, Growing>) {
    this.#nodes = nodes
  }

  static of(...paths: Path[]): FieldSet {
    const set = new FieldSet(new Map())
    for (const path of paths) set.insert(path)
    return set
  }

  /** Nodes that are neither members nor lead to any are left out. */
  static from(nodes: Iterable<FieldNode>): FieldSet {
    const set = new FieldSet(new Map())
    for (const node of nodes) set.#keep(node)
    return set
  }

  #keep(node: FieldNode): void {
    const { element, member, children } = node
    if (children === undefined || !children.isEmpty) {
      if (member || children !== undefined) this.#nodes.set(element.text, node)
    } else if (member) this.#nodes.set(element.text, { element, member, children: undefined })
  }

  /** Only for the caller that makes the set, before any other sees it. The empty path, the whole object, is never owned. */
  insert(path: Path, from = 0): void {
    const element = path[from]
    if (element === undefined) return
    if (from === path.length - 1) this.mark(element)
    else this.descend(element).insert(path, from + 1)
  }

  /** As insert: the set below a step, to which the maker is about to add something. */
  descend(element: PathElement): FieldSet {
    const node = this.#grown(element)
    node.children ??= new FieldSet(new Map())
    return node.children
  }

  /** As insert: the step is a member. */
  mark(element: PathElement): void {
    this.#grown(element).member = true
  }

  #grown(element: PathElement): Growing {
    let node = this.#nodes.get(element.text)
    if (node === undefined) {
      node = { element, member: false, children: undefined }
      this.#nodes.set(element.text, node)
    }
    return node
  }

  get isEmpty(): boolean {
    return this.#nodes.size === 0
  }

  /** In the order in which the steps were added. */
  nodes(): Iterable<FieldNode> {
    return this.#nodes.values()
  }

  sorted(): FieldNode[] {
    const nodes = [...this.#nodes.values()]
    // What was read from FieldsV1 has its order already.
    const ordered = nodes.every((node, at) => at === 0 || compareElements(nodes[at - 1]!.element, node.element) < 0)
    return ordered ? nodes : nodes.sort((a, b) => compareElements(a.element, b.element))
  }

  /** What the set knows of one step from its root. */
  node(element: PathElement): FieldNode | undefined {
    return this.#nodes.get(element.text)
  }

  has(path: Path): boolean {
    let nodes: ReadonlyMap<string, FieldNode> | undefined = this.#nodes
    let found = false
    for (const { text } of path) {
      const node: FieldNode | undefined = nodes?.get(text)
      if (node === undefined) return false
      found = node.member
      const children: FieldSet | undefined = node.children
      nodes = children === undefined ? undefined : children.#nodes
    }
    return found
  }

  /** All members, those of one depth before those below them. */
  *paths(prefix: Path = []): Generator<Path> {
    const nodes = this.sorted()
    for (const { element, member } of nodes) if (member) yield [...prefix, element]
    for (const { element, children } of nodes) if (children !== undefined) yield* children.paths([...prefix, element])
  }

  equals(other: FieldSet): boolean {
    if (this === other) return true
    if (this.#nodes.size !== other.#nodes.size) return false
    for (const [text, node] of this.#nodes) {
      const match = other.#nodes.get(text)
      if (match === undefined || match.member !== node.member) return false
      if (node.children === undefined || match.children === undefined) {
        if (node.children !== match.children) return false
      } else if (!node.children.equals(match.children)) return false
    }
    return true
  }

  /** The set itself where the other adds nothing to it. */
  union(other: FieldSet): FieldSet {
    if (other.isEmpty || this === other) return this
    if (this.isEmpty) return other
    let nodes: Map<string, Growing> | undefined
    for (const [text, theirs] of other.#nodes) {
      const mine = this.#nodes.get(text)
      const both = mine === undefined ? theirs : united(mine, theirs)
      if (both === mine) continue
      nodes ??= new Map(this.#nodes)
      nodes.set(text, both)
    }
    return nodes === undefined ? this : new FieldSet(nodes)
  }

  intersection(other: FieldSet): FieldSet {
    const shared = new FieldSet(new Map())
    for (const [text, { element, member, children }] of this.#nodes) {
      const theirs = other.#nodes.get(text)
      if (theirs === undefined) continue
      const below = theirs.children === undefined ? undefined : children?.intersection(theirs.children)
      shared.#keep({ element, member: member && theirs.member, children: below })
    }
    return shared
  }

  /** Without the members of the other; what lies below a member of the other stays. */
  difference(other: FieldSet): FieldSet {
    return this.#subtract(other, false)
  }

  /** Without the members of the other and all that lies below them. */
  without(other: FieldSet): FieldSet {
    return this.#subtract(other, true)
  }

  /** The set itself where the other takes nothing from it. */
  #subtract(other: FieldSet, deep: boolean): FieldSet {
    if (other.isEmpty || this.isEmpty) return this
    const left = new FieldSet(new Map())
    let changed = false
    for (const [text, node] of this.#nodes) {
      const theirs = other.#nodes.get(text)
      if (theirs === undefined) {
        left.#nodes.set(text, node)
        continue
      }
      const { element, children } = node
      const goes = deep && theirs.member
      const below =
        theirs.children === undefined || children === undefined ? children : children.#subtract(theirs.children, deep)
      const member = node.member && !theirs.member
      if (!goes && below === children && member === node.member) left.#nodes.set(text, node)
      else {
        changed = true
        if (!goes) left.#keep({ element, member, children: below })
      }
    }
    return changed ? left : this
  }
}

function united(mine: Growing, theirs: FieldNode): Growing {
  const children =
    mine.children === undefined || theirs.children === undefined
      ? (mine.children ?? theirs.children)
      : mine.children.union(theirs.children)
  const member = mine.member || theirs.member
  return member === mine.member && children === mine.children ? mine : { element: mine.element, member, children }
}
