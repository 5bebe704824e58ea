/** What an edge names when it subscribes: an interest, spelled as edges and hubs spell it in their stores (`mirror/interest`). */
import { parseFieldSelector } from '../../kube/fieldselector.ts'
import { parseLabelSelector } from '../../kube/selector.ts'
import { StatusError } from '../../kube/status.ts'
import { type Interest, interestOf } from '../../mirror/interest.ts'

/** Undefined for what no interest is called: also another spelling of one, so that each is followed once. */
export function wantedOf(name: string): Interest | undefined {
  const [, path = '', place = '', labels = '', fields = ''] = form.exec(name) ?? []
  const [resource = '', version = '', group = ''] = path.split('/').reverse()
  if (resource === '' || version === '') return undefined
  try {
    const namespace = decodeURIComponent(place)
    const selectors = {
      labels: labels === '' ? anyLabels : parseLabelSelector(labels),
      fields: parseFieldSelector(fields),
    }
    const interest = interestOf({ group, version, resource, namespace, ...selectors })
    // With the text that came: an edge has dozens of interests, and each would keep two.
    return interest.name === name ? { ...interest, name } : undefined
  } catch (error) {
    if (error instanceof StatusError || error instanceof URIError) return undefined
    throw error
  }
}

const anyLabels = parseLabelSelector('')

/** Resource, namespace, labels up to the first `&`, which stands in none, and fields, in which it may. */
const form = /^([^@?]+)(?:@([^?]*))?(?:\?([^&]*)&(.*))?$/s
