// What a program in a pod does with rest.InClusterConfig() and nothing else: informers of its namespace, ConfigMaps among them,
// a write every moment, a read past its informers, a look at what is none of its business, and a name that it looks up as its
// pod is told to. Tells how it fares as one JSON line, again and again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	Host    string            `json:"host"`
	Rounds  int               `json:"rounds"`
	Synced  bool              `json:"synced"`
	Lists   int               `json:"lists"`
	Watches int               `json:"watches"`
	Values  map[string]string `json:"values"`
	Wrote   int               `json:"wrote"`
	Write   string            `json:"write"`
	Read    int               `json:"read"`
	Secret  int               `json:"secret"`
	Refused string            `json:"refused"`
	// Of the name: addresses, or why there are none.
	Found  []string `json:"found"`
	Missed string   `json:"missed"`
	// How often there were none, and why the last time.
	Misses   int    `json:"misses"`
	LastMiss string `json:"lastMiss"`
}

// counter counts what begins from nothing (plain lists, and watches that ask for everything first) and what goes on.
type counter struct {
	next        http.RoundTripper
	collections []string
	mutex       sync.Mutex
	lists       int
	watches     int
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	path := request.URL.Path
	isCollection := slices.Contains(c.collections, path[strings.LastIndexByte(path, '/')+1:])
	isWhole := query.Get("watch") == "" || query.Get("sendInitialEvents") == "true"
	if request.Method == http.MethodGet && isCollection {
		c.mutex.Lock()
		if isWhole {
			c.lists++
		} else {
			c.watches++
		}
		c.mutex.Unlock()
	}
	return c.next.RoundTrip(request)
}

// What it may have informers of.
var kinds = map[string]schema.GroupVersionResource{
	"configmaps":     {Version: "v1", Resource: "configmaps"},
	"pods":           {Version: "v1", Resource: "pods"},
	"services":       {Version: "v1", Resource: "services"},
	"endpointslices": {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

type asked struct {
	namespace, other, lookup string
	also                     []string
}

func main() {
	var all asked
	flag.StringVar(&all.namespace, "namespace", "default", "its own")
	flag.StringVar(&all.other, "other", "kube-system", "one in which it may read no Secret")
	flag.StringVar(&all.lookup, "lookup", "", "a name, if any")
	also := flag.String("also", "", "further informers")
	flag.Parse()
	all.also = strings.FieldsFunc(*also, func(r rune) bool { return r == ',' })
	if err := run(all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(all asked) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	counted := &counter{collections: append([]string{"configmaps"}, all.also...)}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(all.namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	synced := []cache.InformerSynced{informer.HasSynced}
	for _, name := range all.also {
		further, err := factory.ForResource(kinds[name])
		if err != nil {
			return err
		}
		synced = append(synced, further.Informer().HasSynced)
	}
	factory.Start(context.Background().Done())
	now := state{Host: config.Host}
	for {
		now.write(client, all.namespace)
		now.Read, _ = read(func(ctx context.Context) error {
			_, err := client.CoreV1().ConfigMaps(all.namespace).Get(ctx, "written", metav1.GetOptions{})
			return err
		})
		now.Secret, now.Refused = read(func(ctx context.Context) error {
			_, err := client.CoreV1().Secrets(all.other).Get(ctx, "hidden", metav1.GetOptions{})
			return err
		})
		if all.lookup != "" {
			now.lookup(all.lookup)
		}
		now.Rounds++
		now.Synced = !slices.ContainsFunc(synced, func(is cache.InformerSynced) bool { return !is() })
		now.Values = values(informer.GetStore())
		counted.mutex.Lock()
		now.Lists = counted.lists
		now.Watches = counted.watches
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

// lookup asks the servers of /etc/resolv.conf.
func (s *state) lookup(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, name)
	slices.Sort(found)
	s.Found, s.Missed = found, ""
	if err != nil {
		s.Missed, s.LastMiss = err.Error(), err.Error()
		s.Misses++
	}
}

// read is the code with which a read is answered: 200, or that of the refusal with its words; 0 where nobody answered.
func read(get func(context.Context) error) (int, string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := get(ctx)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.As(err, &status):
		return int(status.Status().Code), err.Error()
	default:
		return 0, err.Error()
	}
}
