/** What etcd, kube-apiserver and kube-controller-manager are started with, alone on loopback. */
import { join } from 'node:path'

/** Where the API server says that it is: an address of the documentation range. */
export const nowhere = '192.0.2.1'

export type Places = {
  /** Keys, kubeconfig and etcd's files. */
  readonly dir: string
  readonly port: number
  readonly store: number
  readonly peer: number
}

export function etcdArguments({ dir, store, peer }: Places): string[] {
  const here = `http://127.0.0.1:${peer}`
  const client = `http://127.0.0.1:${store}`
  return [
    `--data-dir=${join(dir, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${here}`,
    `--initial-advertise-peer-urls=${here}`,
    `--initial-cluster=default=${here}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ]
}

export function apiserverArguments({ dir, port, store }: Places): string[] {
  const file = (name: string) => join(dir, name)
  return [
    `--etcd-servers=http://127.0.0.1:${store}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    // It refuses to advertise loopback, and is told to reconcile nothing.
    `--advertise-address=${nowhere}`,
    '--endpoint-reconciler-type=none',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--enable-bootstrap-token-auth',
    `--client-ca-file=${file('ca.crt')}`,
    `--tls-cert-file=${file('apiserver.crt')}`,
    `--tls-private-key-file=${file('apiserver.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('accounts.key')}`,
    `--service-account-signing-key-file=${file('accounts.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    `--kubelet-client-certificate=${file('kubelet-client.crt')}`,
    `--kubelet-client-key=${file('kubelet-client.key')}`,
    // The names of nodes resolve nowhere.
    '--kubelet-preferred-address-types=InternalIP',
  ]
}

export function controllersArguments({ dir }: Pick<Places, 'dir'>): string[] {
  const file = (name: string) => join(dir, name)
  return [
    `--kubeconfig=${file('admin.kubeconfig')}`,
    '--leader-elect=false',
    '--secure-port=0',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${file('accounts.key')}`,
    `--root-ca-file=${file('ca.crt')}`,
    `--cluster-signing-cert-file=${file('ca.crt')}`,
    `--cluster-signing-key-file=${file('ca.key')}`,
  ]
}
