/** The commands of kubectl that make typed objects and send them in protobuf, without a way back to JSON. */
import type { Command } from '../kubectl/command.ts'

const n = '-n typed'
const name = "-o jsonpath='{.kind} {.metadata.name}'"

const writing: readonly string[] = [
  'kubectl create namespace typed',
  '! kubectl create namespace typed',
  `kubectl create serviceaccount default ${n}`,
  `kubectl create configmap cm ${n} --from-literal=a=b --from-literal=c='ü <&>'`,
  `! kubectl create configmap cm ${n} --from-literal=a=b`,
  `! kubectl create configmap UPPER ${n}`,
  `kubectl create configmap dry ${n} --from-literal=a=b --dry-run=server -o yaml | grep -v -e uid -e creationTimestamp`,
  `kubectl create secret generic s ${n} --from-literal=password=hidden`,
  `kubectl create secret docker-registry reg ${n} --docker-username=u --docker-password=p --docker-server=r.example`,
  `kubectl create deployment web ${n} --image=registry.example/web:1 --replicas=2 --port=80 -- run me`,
  `kubectl create job job ${n} --image=registry.example/job:1 -- do it`,
  `kubectl create cronjob cron ${n} --image=registry.example/job:1 --schedule='*/5 * * * *'`,
  `kubectl create job again ${n} --from=cronjob/cron`,
  `kubectl create role r ${n} --verb=get,list --resource=pods,deployments.apps`,
  `kubectl create rolebinding rb ${n} --role=r --serviceaccount=typed:default --user=u`,
  'kubectl create clusterrole typed --verb=get --non-resource-url=/x',
  'kubectl create clusterrolebinding typed --clusterrole=typed --group=g',
  // Only ours warns that a quota limits nothing.
  `kubectl create quota q ${n} --hard=pods=3,cpu=1500m 2>/dev/null`,
  `kubectl create poddisruptionbudget pdb ${n} --selector=app=web --min-available=50%`,
  'kubectl create priorityclass typed --value=7 --description=d',
  `kubectl create ingress i ${n} --rule='host.example/path*=web:80'`,
  `kubectl create service clusterip cluster ${n} --tcp=80:8080`,
  `kubectl create service externalname out ${n} --external-name=else.example`,
  `kubectl run pod ${n} --image=registry.example/pod:1 --labels=app=web --env=A=B`,
  `kubectl expose deployment web ${n} --port=80 --name=exposed`,
  `kubectl autoscale deployment web ${n} --min=1 --max=3 --cpu=50%`,
  `kubectl scale deployment web ${n} --replicas=3`,
  `kubectl set image deployment/web ${n} web=registry.example/web:2`,
  `kubectl label configmap cm ${n} x=y`,
  'kubectl auth can-i get pods',
  `kubectl auth can-i create deployments.apps ${n}`,
  'kubectl auth can-i get /healthz',
  `kubectl delete pod pod ${n} --grace-period=0 --force`,
]

/** What an edge shows, too, while its API server is away. */
const reading: readonly string[] = [
  ...['cm', 'secrets', 'jobs', 'cronjobs', 'roles', 'rolebindings', 'quota', 'pdb', 'ingress', 'svc', 'hpa'].map(
    (kind) => `kubectl get ${kind} ${n} -o name`,
  ),
  `kubectl get configmap cm ${n} ${name}`,
  `kubectl get configmap cm ${n} -o jsonpath='{.data}'`,
  `kubectl get secret s ${n} -o jsonpath='{.data} {.type}'`,
  `kubectl get deployment web ${n} -o jsonpath='{.spec.replicas} {.spec.template.spec.containers[0].image}'`,
  `kubectl get role r ${n} -o jsonpath='{.rules}'`,
  'kubectl get priorityclass typed -o jsonpath={.value}',
]

export const typedWrites: readonly Command[] = writing.map(commandOf)
export const typedReads: readonly Command[] = reading.map(commandOf)

function commandOf(line: string): Command {
  return line.startsWith('! ') ? { line: line.slice(2), fails: true } : { line }
}
