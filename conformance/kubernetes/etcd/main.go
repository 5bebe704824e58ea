// etcd as its own module: the etcd that Kubernetes 1.36 is tested with, built from the module proxy.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
