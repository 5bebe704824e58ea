#!/bin/sh
# A kubeconfig of one server and one caller, with the server's authority inside, readable by its owner alone.
#   kubeconfig.sh FILE SERVER CA CREDENTIAL…    CREDENTIAL as for `kubectl config set-credentials`: --token=… or
#                                               --client-certificate=… --client-key=… [--embed-certs]
set -eu
umask 077
file=$1
server=$2
ca=$3
shift 3
kubectl config --kubeconfig="$file" set-cluster one --server="$server" --certificate-authority="$ca" --embed-certs >&2
kubectl config --kubeconfig="$file" set-credentials one "$@" >&2
kubectl config --kubeconfig="$file" set-context one --cluster=one --user=one >&2
kubectl config --kubeconfig="$file" use-context one >&2
