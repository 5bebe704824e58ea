/** What every way to follow an interest must do, run against each. A new one adds one line to a test that gives it a world. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Item } from '../../cache/item.ts'
import type { FieldPlan } from '../../kube/object.ts'
import { Expired, type Followed, type Follower, type From, type HeldState, type ObjectIdentity } from './follow.ts'

/** One interest in a cluster that the test commands; keys are `NAMESPACE/NAME`. */
export type FollowWorld = Follower & {
  readonly plan: FieldPlan
  /** Creates or changes; answers the version. */
  put(key: string, value: string): number
  remove(key: string): number
  /** Forgets all that happened so far. */
  forget(): void
  /** Puts a backup of that version back; versions go back with it. */
  restore(version: number): void
  /** The cluster tells those who follow how far it is. */
  tellProgress(): void
  /** The line breaks for all who follow. */
  cut(): void
  /** Lets what is under way come to rest. */
  settle(): Promise<void>
}

/** Takes steps as they come; what has come so far can be looked at. */
class Reader {
  readonly steps: Followed[] = []
  fault: unknown
  isOver = false
  readonly #ending = new AbortController()

  constructor({ follow }: FollowWorld, from: From) {
    void this.#read(follow(from, this.#ending.signal))
  }

  async #read(steps: AsyncIterable<Followed>): Promise<void> {
    try {
      for await (const step of steps) this.steps.push(step)
    } catch (error) {
      this.fault = error
    }
    this.isOver = true
  }

  end(): void {
    this.#ending.abort()
  }

  get kinds(): string[] {
    return this.steps.map(({ kind }) => kind)
  }

  step<Kind extends Followed['kind']>(kind: Kind): Extract<Followed, { kind: Kind }> {
    const found = this.steps.find((step) => step.kind === kind)
    return (found ?? assert.fail(`no ${kind} among ${this.kinds}`)) as Extract<Followed, { kind: Kind }>
  }

  get items(): Item[] {
    return this.steps.flatMap((step) => (step.kind === 'snapshot' ? step.items : []))
  }

  get changes(): string[] {
    const all = this.steps.flatMap((step) => (step.kind === 'changes' ? step.changes : []))
    return all.map((change) => {
      if (change.type === 'put') return `${change.item.key}@${change.item.version}`
      return change.type === 'remove' ? `-${change.key}@${change.version}` : `@${change.version}`
    })
  }
}

function heldOf(
  { plan }: FollowWorld,
  version: number,
  items: readonly Item[],
  corrupt: readonly string[] = [],
): HeldState {
  const whole = items.filter(({ key }) => !corrupt.includes(key))
  return {
    version,
    plan,
    size: items.length,
    bytes: items.reduce((sum, { bytes }) => sum + bytes.length, 0),
    peek: (key) => items.find((item) => item.key === key),
    all: () => whole,
    corrupt,
    isCorrupt: (key) => corrupt.includes(key),
    isDamaged: corrupt.length > 0,
  }
}

export function followContract(name: string, open: () => FollowWorld): void {
  const check = (title: string, body: (world: FollowWorld) => Promise<void>) =>
    void test(`${name}: ${title}`, () => body(open()))
  const reading = async (world: FollowWorld, from: Partial<From> = {}) => {
    const reader = new Reader(world, { held: undefined, start: 'anew', check: false, ...from })
    await world.settle()
    return reader
  }
  /** What a copy of all this holds that was cut off now. */
  const held = async (world: FollowWorld, corrupt: readonly string[] = []) => {
    const reader = await reading(world)
    reader.end()
    await world.settle()
    return heldOf(world, reader.step('complete').version, reader.items, corrupt)
  }

  check('[A1] with nothing held: all objects, then complete, then each change in order', async (world) => {
    for (const key of ['a/1', 'a/2', 'b/1']) world.put(key, 'first')
    const reader = await reading(world)
    assert.deepEqual(reader.items.map(({ key }) => key).sort(), ['a/1', 'a/2', 'b/1'])
    assert.deepEqual(reader.kinds.slice(-2), ['complete', 'live'])
    const expected = [`a/1@${world.put('a/1', 'new')}`, `-b/1@${world.remove('b/1')}`, `c/1@${world.put('c/1', 'x')}`]
    await world.settle()
    assert.deepEqual(reader.changes, expected)
    reader.end()
    await world.settle()
    assert.ok(reader.isOver)
  })

  check('an empty collection is complete too, and its progress is told', async (world) => {
    const reader = await reading(world)
    assert.deepEqual([reader.items, reader.kinds.at(-1)], [[], 'live'])
    const version = world.put('a/1', 'x')
    world.tellProgress()
    await world.settle()
    assert.deepEqual(reader.changes[0], `a/1@${version}`)
    reader.end()
  })

  check('[A1] a snapshot can be had at a version of the past, as long as that is known', async (world) => {
    const exactly = world.put('a/1', 'x')
    world.put('a/2', 'x')
    const reader = await reading(world, { exactly })
    assert.deepEqual([reader.items.map(({ key }) => key), reader.step('complete').version], [['a/1'], exactly])
    reader.end()
    world.forget()
    const later = await reading(world, { exactly })
    assert.equal(later.items.length, 2)
    later.end()
  })

  check('[A3] it resumes behind what is held: every change since, once each', async (world) => {
    world.put('a/1', 'x')
    const copy = await held(world)
    const expected = [`a/2@${world.put('a/2', 'x')}`, `-a/1@${world.remove('a/1')}`]
    const reader = await reading(world, { held: copy, start: 'resume', check: true })
    expected.push(`a/3@${world.put('a/3', 'x')}`)
    await world.settle()
    assert.deepEqual(reader.kinds.slice(0, 2), ['verified', 'live'])
    assert.deepEqual(reader.changes, expected)
    reader.end()
  })

  check('[A3] what is too old to be resumed is said to be, and the difference can be had', async (world) => {
    for (const key of ['a/1', 'a/2', 'a/3', 'a/4']) world.put(key, 'first')
    const copy = await held(world)
    world.put('a/1', 'new')
    world.remove('a/2')
    world.remove('a/3')
    world.put('a/3', 'made again')
    world.forget()
    const refused = await reading(world, { held: copy, start: 'resume' })
    assert.ok(refused.fault instanceof Expired, String(refused.fault))
    const reader = await reading(world, { held: copy, start: 'compare' })
    const { changed, gone, repaired, version } = reader.step('difference')
    assert.deepEqual(
      [changed.map(({ key }) => key).sort(), [...gone].sort()],
      [
        ['a/1', 'a/3'],
        ['a/2', 'a/3'],
      ],
    )
    assert.deepEqual([repaired, reader.kinds], [[], ['difference', 'live']])
    assert.ok(version > copy.version)
    reader.end()
  })

  check('[A5] an object of the same version is another where its uid is', async (world) => {
    world.put('a/1', 'x')
    const copy = await held(world)
    const other: HeldState = {
      ...copy,
      peek: (key) => Object.create(copy.peek(key) ?? null, { uid: { value: 'another' } }) as Item,
    }
    const reader = await reading(world, { held: other, start: 'compare' })
    assert.deepEqual(
      reader.step('difference').changed.map(({ key }) => key),
      ['a/1'],
    )
    reader.end()
  })

  check('[D4] a damaged object that did not change is repaired, and nothing else is told', async (world) => {
    for (const key of ['a/1', 'a/2']) world.put(key, 'first')
    const copy = await held(world, ['a/2'])
    const reader = await reading(world, { held: copy, start: 'repair' })
    const { changed, gone, repaired } = reader.step('difference')
    assert.deepEqual([changed, gone, repaired.map(({ key }) => key)], [[], [], ['a/2']])
    reader.end()
  })

  check(
    '[A3] a cluster that was put back is noticed, by a check and by a comparison, and nothing follows',
    async (world) => {
      const backup = world.put('a/1', 'x')
      world.put('a/1', 'y')
      world.put('a/2', 'x')
      const copy = await held(world)
      world.restore(backup)
      for (const from of [{ start: 'resume', check: true }, { start: 'compare' }] as const) {
        const reader = await reading(world, { held: copy, ...from })
        assert.deepEqual([reader.kinds, reader.isOver, reader.fault], [['lost'], true, undefined])
      }
      const anew = await reading(world, { held: copy, start: 'anew' })
      assert.deepEqual(
        anew.items.map(({ key }) => key),
        ['a/1'],
      )
      assert.ok(anew.step('complete').version < copy.version)
      anew.end()
    },
  )

  check(
    '[A3] a cluster that was put back and has overtaken the copy is noticed by an object that is older',
    async (world) => {
      const backup = world.put('a/1', 'x')
      world.put('a/1', 'y')
      const copy = await held(world)
      world.restore(backup)
      for (let i = 0; i < 5; i++) world.put(`b/${i}`, 'x')
      for (const from of [{ start: 'resume', check: true }, { start: 'compare' }] as const) {
        const reader = await reading(world, { held: copy, ...from })
        assert.deepEqual([reader.kinds, reader.isOver, reader.fault], [['lost'], true, undefined])
      }
    },
  )

  check('[A3] … or by one that is gone without ever having been deleted', async (world) => {
    const backup = world.put('a/1', 'x')
    world.put('a/2', 'x')
    const copy = await held(world)
    world.restore(backup)
    for (let i = 0; i < 5; i++) world.put(`b/${i}`, 'x')
    const reader = await reading(world, { held: copy, start: 'resume', check: true })
    world.put('b/9', 'x')
    world.tellProgress()
    await world.settle()
    assert.deepEqual([reader.kinds.at(-1), reader.isOver, reader.fault], ['lost', true, undefined])
  })

  check('[A3] … also where nothing happens any more, or it has come exactly as far', async (world) => {
    for (const more of [5, 1]) {
      const backup = world.put('a/1', 'x')
      const lost = world.put(`a/2-${more}`, 'x')
      const copy = await held(world)
      world.restore(backup)
      let version = 0
      for (let i = 0; i < more; i++) version = world.put(`b/${i}`, 'x')
      assert.equal(version === lost, more === 1)
      const reader = await reading(world, { held: copy, start: 'resume', check: true })
      await world.settle()
      assert.deepEqual([reader.kinds.at(-1), reader.isOver, reader.fault], ['lost', true, undefined])
    }
  })

  check('[A2] what was changed, deleted or made again meanwhile is no sign of another past', async (world) => {
    for (const key of ['a/0', 'a/1', 'a/2', 'a/3']) world.put(key, 'x')
    const copy = await held(world)
    const expected = [`-a/3@${world.remove('a/3')}`, `a/2@${world.put('a/2', 'y')}`, `-a/1@${world.remove('a/1')}`]
    expected.push(`a/1@${world.put('a/1', 'made again')}`)
    const reader = await reading(world, { held: copy, start: 'resume', check: true })
    expected.push(`b/1@${world.put('b/1', 'x')}`)
    await world.settle()
    assert.deepEqual([reader.kinds.slice(0, 2), reader.changes], [['verified', 'live'], expected])
    reader.end()
  })

  check('a change that the copy has missed is found by a check, and the difference is told', async (world) => {
    world.put('a/1', 'x')
    const missed = await held(world)
    world.put('a/1', 'y')
    const version = world.put('a/2', 'x')
    const copy = heldOf(world, version, [...missed.all()])
    const reader = await reading(world, { held: copy, start: 'resume', check: true })
    assert.deepEqual(reader.kinds, ['verified', 'difference', 'live'])
    assert.deepEqual(
      reader.step('difference').changed.map(({ key }) => key),
      ['a/1', 'a/2'],
    )
    reader.end()
  })

  check('[L6] names, uids and versions can be had by themselves, in the order of their keys', async (world) => {
    for (const key of ['b/1', 'a/2', 'a/1']) world.put(key, 'x')
    const copy = await held(world)
    const entries: ObjectIdentity[] = []
    const { signal } = new AbortController()
    for (let part = ''; ; ) {
      const found = await world.identities({ part }, signal)
      entries.push(...found.entries)
      part = found.next
      assert.ok(found.version >= copy.version && found.bytes > 0)
      if (part === '') break
    }
    assert.deepEqual(
      entries,
      [...copy.all()].sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ key, uid, version }) => ({ key, uid, version })),
    )
    const one = await world.identities({ key: 'a/2' }, signal)
    assert.deepEqual(one.entries, [entries[1]])
    assert.deepEqual((await world.identities({ key: 'a/9' }, signal)).entries, [])
  })

  check('a line that breaks ends it with an error, and never as if it were over', async (world) => {
    world.put('a/1', 'x')
    const reader = await reading(world)
    world.cut()
    await world.settle()
    assert.ok(reader.isOver && reader.fault !== undefined)
    assert.ok(!reader.kinds.includes('over'))
  })
}
