/** What users do with server-side apply through the real kubectl, in order; the manifests are in the lines themselves. */
import type { Command } from '../kubectl/command.ts'

const ns = '-n apply-kubectl'

const map = (name: string, data: string, more = '') =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: apply-kubectl\n${more}data: ${data}\n`

const gadget = (name: string, spec: string) =>
  `apiVersion: apply.example.com/v1\nkind: Gadget\nmetadata: {name: ${name}, namespace: apply-kubectl}\nspec: ${spec}\n`

const web = (name: string, image: string, more = '') => `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, namespace: apply-kubectl}
spec:
  progressDeadlineSeconds: 600
  replicas: 1
  revisionHistoryLimit: 10
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: main, image: ${image}, imagePullPolicy: IfNotPresent, resources: {}, terminationMessagePath: /x, terminationMessagePolicy: File${more}}
      dnsPolicy: ClusterFirst
      restartPolicy: Always
      schedulerName: default-scheduler
      securityContext: {}
      terminationGracePeriodSeconds: 30
`

/** The manifest goes to the standard input. */
const fed = (line: string, manifest: string) => `${line} -f - <<'END'\n${manifest}END`
const side = 'kubectl apply --server-side'
/** Managers are listed by time: two that the clock put into one second come in another order than two that it did not. */
const managers = '{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\\n"}{end}'
const shown = (what: string) =>
  `kubectl get ${what} ${ns} -o yaml && kubectl get ${what} ${ns} -o jsonpath='${managers}' | sort`

const lines: readonly string[] = [
  'kubectl create -f - <<END\napiVersion: v1\nkind: Namespace\nmetadata: {name: apply-kubectl}\nEND',
  fed(side, map('a', '{x: "1"}')),
  `kubectl get cm a ${ns} -o yaml --show-managed-fields`,
  fed(side, map('a', '{x: "1"}')),
  fed(side, map('a', '{x: "2", y: "1"}')),
  fed(`${side} --field-manager=other`, map('a', '{y: "1", z: "1"}')),
  `! ${fed(`${side} --field-manager=other`, map('a', '{x: "3", y: "3"}'))}`,
  `! ${fed(`${side} --field-manager=third`, map('a', '{x: "3", y: "3"}'))}`,
  fed(`${side} --field-manager=third --force-conflicts`, map('a', '{x: "3", y: "3"}')),
  shown('cm a'),
  `! ${fed(side, map('a', '{x: "2", y: "1"}'))}`,
  fed(`${side} --force-conflicts`, map('a', '{x: "2"}')),
  fed(`${side} --dry-run=server -o yaml`, map('a', '{x: "2", w: "1"}')),
  `(${fed(`${side} --dry-run=server -o jsonpath='${managers}'`, map('a', '{x: "2", w: "1"}'))}\n) | sort`,
  fed(`${side} --dry-run=server`, map('dry', '{x: "1"}')),
  `! kubectl get cm dry ${ns}`,
  `! ${fed(side, map('a', '{x: 5}'))}`,
  `! ${fed(side, map('a', '{x: "5"}', '  nonsense: x\n'))}`,
  `! ${fed(`${side} --validate=false`, map('a', '{x: "5"}', '  nonsense: x\n'))}`,
  `! ${fed('kubectl diff --server-side', map('a', '{x: "2", w: "1"}'))}`,
  fed('kubectl diff --server-side', map('a', '{x: "2"}')),
  // It tries several times and says so with its process id.
  `(${fed('kubectl diff --server-side --field-manager=other', map('a', '{x: "9"}'))}\n) 2>&1 | sed 's/^W.*] //'`,
  `! ${fed('kubectl diff --server-side --field-manager=other --force-conflicts', map('a', '{x: "9"}'))}`,
  `! ${fed('kubectl diff --server-side', map('new', '{x: "1"}'))}`,
  `kubectl apply view-last-applied cm a ${ns}`,
  // From the client's apply to the server's.
  fed('kubectl apply', map('b', '{x: "1", y: "1"}')),
  `kubectl apply view-last-applied cm b ${ns}`,
  shown('cm b'),
  fed(side, map('b', '{x: "2", y: "1"}')),
  shown('cm b'),
  fed(side, map('b', '{x: "2"}')),
  `kubectl apply view-last-applied cm b ${ns} -o json`,
  shown('cm b'),
  fed('kubectl apply', map('b', '{x: "3"}')),
  shown('cm b'),
  // Others write in between.
  `kubectl label cm b ${ns} l=1 --field-manager=labeller`,
  `kubectl annotate cm b ${ns} n=1`,
  shown('cm b'),
  `! ${fed(side, map('b', '{x: "3"}', '  labels: {l: "2"}\n'))}`,
  `kubectl patch cm b ${ns} --type=merge -p '{"data":{"p":"1"}}' --field-manager=patcher`,
  `kubectl patch cm b ${ns} --type=json -p '[{"op":"add","path":"/data/q","value":"1"}]'`,
  shown('cm b'),
  // A deployment.
  fed(side, web('web', 'registry.example/image:1')),
  shown('deploy web'),
  `kubectl scale deploy web ${ns} --replicas=3`,
  `kubectl set image deploy/web ${ns} main=registry.example/image:2 --field-manager=setter`,
  `kubectl set env deploy/web ${ns} A=1 B=2`,
  `kubectl annotate deploy web ${ns} n=1 --field-manager=annotator`,
  shown('deploy web'),
  `! ${fed(side, web('web', 'registry.example/image:1'))}`,
  fed(`${side} --force-conflicts`, web('web', 'registry.example/image:1', ', env: [{name: A, value: "2"}]')),
  `! ${fed('kubectl diff --server-side', web('web', 'registry.example/image:3', ', env: [{name: A, value: "2"}]'))}`,
  shown('deploy web'),
  `kubectl rollout restart deploy/web ${ns} --field-manager=restarter`,
  `kubectl get deploy web ${ns} -o jsonpath='${managers}' | sort`,
  // Custom resources.
  fed(side, gadget('g', '{tags: [x, w], parts: [{name: p, value: "1"}], ports: [{port: 80}]}')),
  fed(
    `${side} --field-manager=other`,
    gadget('g', '{tags: [z], parts: [{name: q}], ports: [{port: 80, protocol: UDP}]}'),
  ),
  `! ${fed(`${side} --field-manager=other`, gadget('g', '{parts: [{name: p, value: "2"}]}'))}`,
  shown('gadgets g'),
  `kubectl patch gadget g ${ns} --subresource=status --type=merge -p '{"status":{"phase":"x"}}'`,
  `kubectl scale gadget g ${ns} --replicas=2`,
  shown('gadgets g'),
  `kubectl create -f - ${ns} --field-manager=creator <<'END'\n${map('c', '{x: "1"}')}END`,
  `kubectl replace -f - ${ns} --field-manager=replacer <<'END'\n${map('c', '{x: "2"}')}END`,
  shown('cm c'),
  // Several objects at once, one of which is refused.
  `! ${fed(`${side} --field-manager=fourth`, `${map('a', '{x: "8"}')}---\n${map('d', '{x: "8"}')}`)}`,
  `kubectl delete cm a b c d ${ns}`,
]

export const script: readonly Command[] = lines.map((line) =>
  line.startsWith('! ') ? { line: line.slice(2), fails: true } : { line },
)
