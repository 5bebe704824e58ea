/** Rows of volumes, claims and the drivers behind them. */

import {
  age,
  deleting,
  field,
  flag,
  list,
  nameOf,
  type Printers,
  record,
  text,
  textOr,
  texts,
  type View,
} from './read.ts'

export const storagePrinters: Printers = {
  persistentvolumes: (volume, nowMs) => [
    nameOf(volume),
    textOr('0', volume, 'spec', 'capacity', 'storage'),
    accessModes(texts(volume, 'spec', 'accessModes')),
    text(volume, 'spec', 'persistentVolumeReclaimPolicy'),
    phase(volume),
    claimOf(volume),
    storageClass(volume),
    textOr('<unset>', volume, 'spec', 'volumeAttributesClassName'),
    text(volume, 'status', 'reason'),
    age(volume, nowMs),
    textOr('<unset>', volume, 'spec', 'volumeMode'),
  ],
  persistentvolumeclaims: (claim, nowMs) => {
    const bound = text(claim, 'spec', 'volumeName') !== ''
    return [
      nameOf(claim),
      phase(claim),
      text(claim, 'spec', 'volumeName'),
      bound ? textOr('0', claim, 'status', 'capacity', 'storage') : '',
      bound ? accessModes(texts(claim, 'status', 'accessModes')) : '',
      storageClass(claim),
      textOr('<unset>', claim, 'spec', 'volumeAttributesClassName'),
      age(claim, nowMs),
      textOr('<unset>', claim, 'spec', 'volumeMode'),
    ]
  },
  'storageclasses.storage.k8s.io': (object, nowMs) => [
    nameOf(object) + (isDefaultClass(object) ? ' (default)' : ''),
    text(object, 'provisioner'),
    textOr('Delete', object, 'reclaimPolicy'),
    textOr('Immediate', object, 'volumeBindingMode'),
    flag(object, 'allowVolumeExpansion'),
    age(object, nowMs),
  ],
  'volumeattributesclasses.storage.k8s.io': (object, nowMs) => [
    nameOf(object),
    text(object, 'driverName'),
    age(object, nowMs),
  ],
  'csinodes.storage.k8s.io': (object, nowMs) => [
    nameOf(object),
    list(object, 'spec', 'drivers').length,
    age(object, nowMs),
  ],
  'csidrivers.storage.k8s.io': (driver, nowMs) => [
    nameOf(driver),
    field(driver, 'spec', 'attachRequired') !== false,
    flag(driver, 'spec', 'podInfoOnMount'),
    flag(driver, 'spec', 'storageCapacity'),
    tokenAudiences(driver),
    flag(driver, 'spec', 'requiresRepublish'),
    texts(driver, 'spec', 'volumeLifecycleModes').join(',') || '<none>',
    age(driver, nowMs),
  ],
  'volumeattachments.storage.k8s.io': (object, nowMs) => [
    nameOf(object),
    text(object, 'spec', 'attacher'),
    text(object, 'spec', 'source', 'persistentVolumeName'),
    text(object, 'spec', 'nodeName'),
    flag(object, 'status', 'attached'),
    age(object, nowMs),
  ],
}

function phase(object: View): string {
  return deleting(object) ? 'Terminating' : text(object, 'status', 'phase')
}

/** In the order they are always listed. */
const MODES: readonly (readonly [name: string, short: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
]

function accessModes(modes: readonly string[]): string {
  return MODES.filter(([name]) => modes.includes(name))
    .map(([, short]) => short)
    .join(',')
}

function claimOf(volume: View): string {
  if (field(volume, 'spec', 'claimRef') === undefined) return ''
  return `${text(volume, 'spec', 'claimRef', 'namespace')}/${text(volume, 'spec', 'claimRef', 'name')}`
}

/** The annotation of the beta days goes before the field. */
function storageClass(object: View): string {
  const annotation = record(object, 'metadata', 'annotations')['volume.beta.kubernetes.io/storage-class']
  return typeof annotation === 'string' ? annotation : text(object, 'spec', 'storageClassName')
}

function isDefaultClass(object: View): boolean {
  const annotations = record(object, 'metadata', 'annotations')
  return (
    annotations['storageclass.kubernetes.io/is-default-class'] === 'true' ||
    annotations['storageclass.beta.kubernetes.io/is-default-class'] === 'true'
  )
}

function tokenAudiences(driver: View): string {
  if (field(driver, 'spec', 'tokenRequests') === undefined) return '<unset>'
  return list(driver, 'spec', 'tokenRequests')
    .map((request) => text(request, 'audience'))
    .join(',')
}
