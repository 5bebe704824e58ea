import assert from 'node:assert/strict'
import { test } from 'node:test'
import { optionsHelp, optionsMarkdown } from './options.ts'

test('help shows each option of the command with its variable and default', () => {
  const help = optionsHelp('serve')
  assert.match(
    help,
    /^ {2}--listen HOST:PORT +address to serve on.*\(AKE_LISTEN, default 127\.0\.0\.1:10005, may be repeated\)$/m,
  )
  assert.match(help, /^ {2}--config FILE +.*\(AKE_CONFIG\)$/m)
  assert.match(optionsHelp('demo'), /default 127\.0\.0\.1:0, may be repeated\)/)
  assert.doesNotMatch(optionsHelp('demo'), /--data/)
  assert.equal(optionsHelp('version'), '')
  assert.match(optionsHelp('hub issue'), /^ {2}--out FILE +.*\(AKE_OUT, required\)$/m)
  assert.doesNotMatch(optionsHelp('hub issue'), /--kubeconfig .*required/)
  assert.match(optionsHelp('hub issue'), /^ {2}--force +.*\(AKE_FORCE\)$/m)
  assert.match(optionsHelp('edge'), /^ {2}--server URL +.*\(AKE_SERVER, may be repeated\)$/m)
})

test('docs/options.md has a row for each option', () => {
  const table = optionsMarkdown()
  assert.match(
    table,
    /^\| `--listen HOST:PORT` \| `AKE_LISTEN` \| serve \(`127.0.0.1:10005`\), edge \(`127.0.0.1:10005`\), join \(`127.0.0.1:10005`\), hub \(`:10002`\), demo \(`127.0.0.1:0`\) \|/m,
  )
  assert.match(table, /^\| `--config FILE` \| `AKE_CONFIG` \| serve, edge, hub \|/m)
  assert.match(table, /^\| `--kubeconfig FILE` \| `AKE_KUBECONFIG` \| edge, hub, hub issue, hub restored[, a-z]* \|/m)
  assert.match(table, /^\| `--server URL` \| `AKE_SERVER` \| edge, hub \| .*; may be repeated \|$/m)
  // A bar would end the cell.
  assert.match(
    table,
    /^\| `--state DIR\\\|secret:NAMESPACE\/NAME` \| `AKE_STATE` \| hub \(required\), hub issue \(required\), hub restored \(required\)[^|]* \|/m,
  )
  assert.match(table, /^\| `--force` \| `AKE_FORCE` \| hub issue, hub authority \|/m)
})
