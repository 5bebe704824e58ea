#!/bin/sh
# A client certificate by the cluster's own signer, by an administrator's kubectl: certificate and key on standard output,
# in one PEM. The key is made here and leaves no file behind. Renew by running it again.
#   certificate.sh NAME SUBJECT [SIGNER] >NAME.pem
set -eu
name=$1
subject=$2
signer=${3:-kubernetes.io/kube-apiserver-client}
key=$(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)
request=$(printf '%s\n' "$key" | openssl req -new -key /dev/stdin -subj "$subject" | base64 | tr -d '\n')
kubectl delete csr "$name" --ignore-not-found >&2
kubectl create -f - >&2 <<END
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: { name: "$name" }
spec: { request: "$request", signerName: "$signer", usages: [digital signature, client auth] }
END
kubectl certificate approve "$name" >&2
tries=60
until certificate=$(kubectl get csr "$name" -o jsonpath='{.status.certificate}') && [ -n "$certificate" ]; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || { echo "certificate.sh: no signer has answered $name: kubectl describe csr $name" >&2; exit 1; }
  sleep 1
done
kubectl delete csr "$name" >&2
printf '%s' "$certificate" | base64 -d
printf '%s\n' "$key"
