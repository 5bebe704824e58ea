// Go clients as controllers have them, in protobuf: a typed clientset, a metadata client and informers do the same things
// on whatever server the kubeconfig names, and print one line for each, without what two servers name by themselves. At the
// end it tells in which forms requests and answers went.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "clients"
	patience  = 60 * time.Second
)

type client struct {
	typed    kubernetes.Interface
	metadata metadata.Interface
}

func main() {
	path := flag.String("kubeconfig", "", "how to reach the server")
	reads := flag.Bool("reads", false, "only what reads, of what a run with writes has left behind")
	flag.Parse()
	if err := run(*path, *reads); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, reads bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	config.QPS = -1
	// Exactly as kubelet and the controllers are configured; metadata clients take protobuf by themselves.
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	seen := &forms{sent: map[string]int{}, got: map[string]int{}}
	config.Wrap(seen.wrap)
	one := &client{}
	if one.typed, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if one.metadata, err = metadata.NewForConfig(rest.CopyConfig(config)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !reads {
		if err := one.write(ctx); err != nil {
			return err
		}
	}
	if err := one.read(ctx); err != nil {
		return err
	}
	if err := one.inform(ctx); err != nil {
		return err
	}
	seen.say()
	return nil
}
