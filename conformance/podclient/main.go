// What a program in a pod does with rest.InClusterConfig() and nothing else: an informer of the ConfigMaps of its namespace,
// a write every moment, and a look at what is none of its business. Tells how it fares as one JSON line, again and again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	every = 250 * time.Millisecond
	// An API server that is away must not keep the next write waiting for long.
	patience = 3 * time.Second
)

type state struct {
	Host   string            `json:"host"`
	Rounds int               `json:"rounds"`
	Synced bool              `json:"synced"`
	Lists  int               `json:"lists"`
	Values map[string]string `json:"values"`
	Wrote  int               `json:"wrote"`
	Write  string            `json:"write"`
	Secret int               `json:"secret"`
}

// counter counts what begins from nothing: plain lists, and watches that ask for everything first.
type counter struct {
	next  http.RoundTripper
	mutex sync.Mutex
	lists int
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	isCollection := strings.HasSuffix(request.URL.Path, "/configmaps")
	isWhole := query.Get("watch") == "" || query.Get("sendInitialEvents") == "true"
	if request.Method == http.MethodGet && isCollection && isWhole {
		c.mutex.Lock()
		c.lists++
		c.mutex.Unlock()
	}
	return c.next.RoundTrip(request)
}

func main() {
	namespace := flag.String("namespace", "default", "its own")
	other := flag.String("other", "kube-system", "one in which it may read nothing")
	flag.Parse()
	if err := run(*namespace, *other); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(namespace, other string) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	counted := &counter{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(context.Background().Done())
	now := state{Host: config.Host}
	for {
		now.write(client, namespace)
		now.Secret = secret(client, other)
		now.Rounds++
		now.Synced = informer.HasSynced()
		now.Values = values(informer.GetStore())
		counted.mutex.Lock()
		now.Lists = counted.lists
		counted.mutex.Unlock()
		line, err := json.Marshal(now)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
		time.Sleep(every)
	}
}

func values(store cache.Store) map[string]string {
	found := map[string]string{}
	for _, one := range store.List() {
		if object, is := one.(*corev1.ConfigMap); is {
			found[object.Name] = object.Data["value"]
		}
	}
	return found
}

func (s *state) write(client kubernetes.Interface, namespace string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "written"},
		Data:       map[string]string{"value": strconv.Itoa(s.Wrote + 1)},
	}
	_, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
	}
	s.Write = "ok"
	if err != nil {
		s.Write = err.Error()
		return
	}
	s.Wrote++
}

// secret is the code with which a Secret of another namespace is refused, or 200.
func secret(client kubernetes.Interface, namespace string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := client.CoreV1().Secrets(namespace).Get(ctx, "hidden", metav1.GetOptions{})
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &status):
		return int(status.Status().Code)
	default:
		return 0
	}
}
