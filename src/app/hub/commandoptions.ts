/** Options of the commands with which an operator acts on a fleet: `ake hub issue`, `authority`, `revoke`, `policy test`, `token`. */
import type { Option } from '../option.ts'

export const hubCommandOptions = [
  {
    name: 'out',
    env: 'AKE_OUT',
    type: 'file',
    commands: { 'hub issue': undefined },
    required: { 'hub issue': 'give the file to write the credential to' },
    help: "file for the edge's credential: its certificate and key, and the hub's authority (PEM, 0600)",
  },
  {
    name: 'force',
    env: 'AKE_FORCE',
    type: 'switch',
    commands: { 'hub issue': 'false', 'hub authority': 'false' },
    help: 'replaces the file of --out if there is one; takes a step of "ake hub authority" before its time',
  },
  {
    name: 'compromised',
    env: 'AKE_COMPROMISED',
    type: 'switch',
    commands: { 'hub authority': 'false' },
    help: 'with "switch", where others may have the key of the authority: what it signed is not renewed, and counts no more at once',
  },
  {
    name: 'since',
    env: 'AKE_SINCE',
    type: 'time',
    commands: { 'hub revoke': undefined },
    help: 'what was issued before this time counts no more; now, unless it is given',
  },
  {
    name: 'for-good',
    env: 'AKE_FOR_GOOD',
    type: 'switch',
    commands: { 'hub revoke': 'false' },
    help: 'nothing counts that is issued to this edge, later either, until --undo: for one that joined, whose thief may renew at the API server',
  },
  {
    name: 'undo',
    env: 'AKE_UNDO',
    type: 'switch',
    commands: { 'hub revoke': 'false' },
    help: 'what was revoked counts again, until its end',
  },
  {
    name: 'speak-for',
    env: 'AKE_SPEAK_FOR',
    type: 'user',
    commands: { 'hub policy test': undefined },
    help: 'whether the edge may speak for a caller of this name, whose certificate it was shown',
  },
  {
    name: 'group',
    env: 'AKE_GROUP',
    type: 'user',
    commands: { 'hub policy test': undefined },
    list: true,
    help: 'group of the caller of --speak-for',
  },
  {
    name: 'interest',
    env: 'AKE_INTEREST',
    type: 'object',
    commands: { 'hub policy test': undefined },
    help: 'whether policies let the edge mirror this: a resource, of one namespace, or one object',
  },
  {
    name: 'never',
    env: 'AKE_NEVER',
    type: 'object',
    commands: { 'hub policy test': undefined },
    help: 'whether the edge never keeps this, or anything of it',
  },
  {
    name: 'ttl',
    env: 'AKE_TTL',
    type: 'duration',
    commands: { 'hub token': '24h' },
    help: 'how long edges can join with the token',
  },
] as const satisfies readonly Option[]
