// One informer of client-go and everything it saw: its requests, each raw event of its watches, and what its handlers
// were told.
package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type access struct {
	list  func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	kind  runtime.Object
}

type informer struct {
	spec    spec
	traffic *traffic
	access  access
	// fresh asks the same outside the count, where the truth is.
	fresh  access
	shared cache.SharedIndexInformer
	// What handlers and streams must keep to.
	rules rules

	mutex   sync.Mutex
	initial []record
	start   int64
	events  []record
	count   int
	told    map[string]int64
	faults  []string
	handled int
	// Deletions that only a list revealed, and deletions told twice: faults or not, as the rules say.
	missed, repeated int
}

// opted tells client-go that this source has no streaming lists, as an older one would.
type opted struct {
	*cache.ListWatch
	plain bool
}

func (o opted) IsWatchListSemanticsUnSupported() bool { return o.plain }

// newInformer reads by base; the truth to compare with is read by direct.
func newInformer(base, direct *rest.Config, of spec, rules rules) (*informer, error) {
	made := &informer{
		spec: of, told: map[string]int64{}, rules: rules,
		traffic: &traffic{statuses: map[int]int{}, failures: map[string]int{}},
	}
	config := configure(base, of.patient)
	if of.protobuf {
		preferProtobuf(config)
	}
	if of.http1 {
		config.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		made.traffic.next = next
		return made.traffic
	})
	var err error
	if made.access, err = open(config, of); err != nil {
		return nil, err
	}
	if made.fresh, err = open(configure(direct, true), of); err != nil {
		return nil, err
	}
	source := opted{plain: of.plain, ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			of.narrow(&options)
			list, err := made.access.list(ctx, options)
			if err == nil {
				made.listed(list)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			of.narrow(&options)
			opened := time.Now()
			stream, err := made.access.watch(ctx, options)
			if err != nil {
				made.traffic.note("watch not opened: " + err.Error())
				return nil, err
			}
			return made.tap(stream, opened, options.SendInitialEvents != nil), nil
		},
	}}
	made.shared = cache.NewSharedIndexInformer(source, made.access.kind, 0, cache.Indexers{})
	_, err = made.shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { made.heard("add", object) },
		UpdateFunc: func(_, object any) { made.heard("update", object) },
		DeleteFunc: func(object any) { made.heard("delete", object) },
	})
	if err != nil {
		return nil, err
	}
	err = made.shared.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		made.traffic.note("reflector: " + err.Error())
	})
	return made, err
}

func open(config *rest.Config, of spec) (access, error) {
	var opened access
	if of.metadata {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return opened, err
		}
		objects := client.Resource(of.of).Namespace(of.namespace)
		opened.kind = &metav1.PartialObjectMetadata{}
		opened.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }
		opened.watch = objects.Watch
		return opened, nil
	}
	if of.of == widgets {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return opened, err
		}
		objects := client.Resource(of.of).Namespace(of.namespace)
		kind := &unstructured.Unstructured{}
		kind.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"})
		opened.kind = kind
		opened.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }
		opened.watch = objects.Watch
		return opened, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return opened, err
	}
	core := client.CoreV1()
	switch of.of {
	case pods:
		objects := core.Pods(of.namespace)
		opened.kind = &corev1.Pod{}
		opened.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }
		opened.watch = objects.Watch
	case configMaps:
		objects := core.ConfigMaps(of.namespace)
		opened.kind = &corev1.ConfigMap{}
		opened.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }
		opened.watch = objects.Watch
	default:
		objects := core.Secrets(of.namespace)
		opened.kind = &corev1.Secret{}
		opened.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }
		opened.watch = objects.Watch
	}
	return opened, nil
}

func (i *informer) listed(list runtime.Object) {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		i.fault("list: %v", err)
		return
	}
	version, _ := strconv.ParseInt(accessor.GetResourceVersion(), 10, 64)
	var found []record
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		made, err := recordOf("", item)
		if err != nil {
			i.fault("list item: %v", err)
		}
		found = append(found, made)
		return nil
	})
	i.begin(found, version)
}

// begin is a complete first state. After a relist what was seen before counts no more: the relist itself is the failure.
func (i *informer) begin(found []record, version int64) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	// The first one finds nothing told yet.
	i.rules.relisted = i.start != 0
	i.initial, i.start, i.events = found, version, nil
}

// tap remembers every event on its way to the reflector.
func (i *informer) tap(stream watch.Interface, opened time.Time, initial bool) watch.Interface {
	var found []record
	newest := int64(0)
	return watch.Filter(ended{stream, func(count int) {
		i.traffic.ended(time.Since(opened), count)
	}}, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Error {
			i.traffic.failed(fmt.Sprint(event.Object))
			return event, true
		}
		made, err := recordOf(string(event.Type), event.Object)
		if err != nil {
			i.fault("event: %v", err)
			return event, true
		}
		if !initial {
			// Objects that a restore put back carry the versions they had, whatever was told before them.
			if made.RV < newest && !i.isForgiven() {
				i.fault("a stream went back from %d to %v", newest, made)
			}
			newest = made.RV
		}
		switch {
		case event.Type == watch.Bookmark:
			accessor, _ := meta.Accessor(event.Object)
			if initial && accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				initial, newest = false, made.RV
				i.begin(found, made.RV)
			}
		case initial:
			made.Type = ""
			found = append(found, made)
		default:
			i.mutex.Lock()
			i.count++
			if i.rules.everyEvent {
				i.events = append(i.events, made)
			}
			i.mutex.Unlock()
		}
		return event, true
	})
}

// ended says when the stream under a filter is over.
type ended struct {
	watch.Interface
	said func(count int)
}

func (e ended) ResultChan() <-chan watch.Event {
	out := make(chan watch.Event)
	go func() {
		defer close(out)
		count := 0
		for event := range e.Interface.ResultChan() {
			count++
			out <- event
		}
		e.said(count)
	}()
	return out
}

// heard checks what handlers rely on: one add, then rising versions, then one delete.
func (i *informer) heard(what string, object any) {
	tombstone, gone := object.(cache.DeletedFinalStateUnknown)
	if gone {
		object = tombstone.Obj
	}
	made, err := recordOf(what, object.(runtime.Object))
	if err != nil {
		i.fault("handler: %v", err)
		return
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.handled++
	if gone {
		// Only a list after the first one tells so.
		i.missed++
	}
	last, known := i.told[made.Key]
	if i.rules.against(what, made.RV, last, known) {
		i.faultLocked("handler was told %s while %d was known (%v)", made, last, known)
	}
	if what == "delete" && !known {
		i.repeated++
	}
	if what == "delete" {
		delete(i.told, made.Key)
	} else {
		i.told[made.Key] = made.RV
	}
}

func (i *informer) fault(format string, args ...any) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.faultLocked(format, args...)
}

// One cause often has a thousand effects: the first ones tell.
const faultsMax = 50

func (i *informer) faultLocked(format string, args ...any) {
	if len(i.faults) < faultsMax {
		i.faults = append(i.faults, fmt.Sprintf(format, args...))
	}
}
