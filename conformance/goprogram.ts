/**
 * Builds a Go program of this folder into the cache folder, once per state of its sources: the clients that only exist in
 * Go (informers) are run as they are.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'

/** How much of a failed build's output is shown: the compiler's own words are at its end. */
const outputMax = 4_000

/** A program of another module, which `conformance/<name>/go.mod` lists under `tool`. */
type Tool = { readonly package: string; readonly tags: string }

/** The path of the program whose module is `conformance/<name>`, or of a tool of it. */
export async function buildGoProgram(module: string, progress: (line: string) => void, tool?: Tool): Promise<string> {
  const folder = join(import.meta.dirname, module)
  const name = tool === undefined ? module : basename(tool.package)
  const cache = join(process.env.AKE_CACHE || join(homedir(), '.cache', 'ake'), 'programs')
  const program = join(cache, `${name}-${await digest(folder, tool)}`)
  const built = await stat(program).then(
    () => true,
    () => false,
  )
  if (built) return program
  await mkdir(cache, { recursive: true })
  progress(`building ${name}; the first build compiles all it imports`)
  // Renamed when complete: an aborted build, or two at once, leave no half program behind.
  const unfinished = `${program}.${process.pid}`
  try {
    await goBuild(folder, unfinished, tool)
    await rename(unfinished, program)
  } finally {
    await rm(unfinished, { force: true })
  }
  return program
}

const plain: Tool = { package: '.', tags: '' }

async function digest(folder: string, tool: Tool | undefined): Promise<string> {
  const hash = createHash('sha256')
  if (tool !== undefined) hash.update(`${tool.package} ${tool.tags}\n`)
  for (const file of (await readdir(folder)).sort()) {
    const content = await readFile(join(folder, file))
    hash.update(`${file} ${content.length}\n`).update(content)
  }
  return hash.digest('hex').slice(0, 16)
}

function goBuild(folder: string, output: string, { package: what, tags } = plain): Promise<void> {
  const env = { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' }
  const args = ['build', '-trimpath', '-buildvcs=false', '-ldflags', '-s -w', '-tags', tags, '-o', output, what]
  return new Promise((resolve, reject) => {
    const child = spawn('go', args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-outputMax)
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'ENOENT' ? new Error('Go is not installed: conformance needs Go 1.26 in PATH') : error)
    })
    child.on('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`go build in ${folder} failed (${code}):\n${said}`))
    })
  })
}
