/** What is typed in each chapter of the night, in this order. `web-<pod>` is the pod, `/var/lib/ake` the edge's folder. */

const readyz = "curl -s --cacert /var/lib/ake/pki/ca.crt 'https://127.0.0.1:10005/readyz?verbose'"
const onNode = '--field-selector spec.nodeName=edge-1'
/** A person with a certificate of the cluster and the role `view` in shop; no credential tells the edge how to act for them. */
const technician = 'kubectl --kubeconfig /etc/ake/technician.kubeconfig'

export const evening = ['ake check --data /var/lib/ake']

export const firstCommands = [
  'kubectl get pods',
  'kubectl get pods -n shop',
  'kubectl get pods -A',
  `kubectl get pods -A ${onNode}`,
  `kubectl get pods -n shop -o wide ${onNode}`,
  'kubectl get nodes',
  'kubectl get all',
  'kubectl get all -n shop',
  'kubectl get deploy -n shop',
  'kubectl get svc -n shop',
  'kubectl get events -n shop',
  'kubectl describe pod -n shop web-<pod>',
  'kubectl describe node edge-1',
  'kubectl logs -n shop web-<pod>',
  'kubectl exec -n shop web-<pod> -- date',
  'kubectl get secret -n shop',
  'kubectl get secret -n shop word',
  'kubectl get cm -n shop settings -o yaml',
  'kubectl scale deploy -n shop web --replicas=2',
  'kubectl rollout restart deploy -n shop web',
  'kubectl delete pod -n shop web-<pod>',
  `kubectl patch cm -n shop settings -p '{"data":{"greeting":"good night"}}'`,
  'kubectl apply -f settings.yaml',
  'kubectl apply -f settings.yaml --dry-run=client',
  'kubectl apply -f settings.yaml --dry-run=server',
  'kubectl apply -f web.yaml --dry-run=client',
  'kubectl create -f web.yaml --dry-run=client',
  'kubectl explain pod',
  'kubectl explain deploy.spec.strategy',
  'kubectl api-resources --api-group=apps',
  'kubectl cluster-info',
  'kubectl version',
  'kubectl top pods -n shop',
  'kubectl auth can-i list pods -n shop',
  'kubectl auth can-i delete pods -n shop',
  'kubectl auth whoami',
  'kubectl cordon edge-1',
  'kubectl drain edge-1',
  'kubectl debug -n shop web-<pod> --image=busybox',
  'kubectl port-forward -n shop web-<pod> 8080',
  'kubectl get nosuch',
  `${technician} get pods -n shop ${onNode}`,
  `${technician} get secret -n shop word`,
  `${technician} auth can-i list pods -n shop`,
  `${technician} auth whoami`,
  `${technician} delete pod -n shop web-<pod>`,
  'ake status --data /var/lib/ake',
  'ake check --data /var/lib/ake',
  readyz,
  'curl -s --cacert /var/lib/ake/pki/ca.crt https://127.0.0.1:10005/livez',
]

export const rebooted = [
  'ake status --data /var/lib/ake',
  'ake check --data /var/lib/ake',
  readyz,
  `kubectl get pods -A ${onNode}`,
  'kubectl get secret -n shop word',
  'kubectl explain pod.spec.nodeName',
]

export const expired = [
  'ake status --data /var/lib/ake',
  'ake check --data /var/lib/ake',
  `kubectl get pods -A ${onNode}`,
]

export const refused = [
  // What is asked again just now is not refused for a moment: its table changes.
  `ake status --data /var/lib/ake | sed '/^RESOURCE/,/^Next/d'`,
  'ake check --data /var/lib/ake',
  readyz,
  `kubectl get pods -A ${onNode}`,
  'kubectl get deploy -n shop',
  'kubectl delete pod -n shop web-<pod>',
]

export const morning = [
  'ake status --data /var/lib/ake',
  'ake check --data /var/lib/ake',
  readyz,
  'kubectl get pods -n shop',
  'kubectl get deploy -n shop',
  `${technician} get pods -n shop`,
  `${technician} scale deploy -n shop web --replicas=2`,
  'kubectl delete pod -n shop web-<pod>',
]
