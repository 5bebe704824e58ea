package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
)

func (c *client) read(ctx context.Context) error {
	core := c.typed.CoreV1()
	one, err := core.ConfigMaps(namespace).Get(ctx, "first", metav1.GetOptions{})
	told("get map", err, "%v %v", one.Data, one.BinaryData)
	_, err = core.ConfigMaps(namespace).Get(ctx, "nothing", metav1.GetOptions{})
	told("get no map", err, "found")
	list, err := core.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: "run=clients"})
	told("list maps", err, "%s", names(len(list.Items), func(i int) string { return list.Items[i].Name }))
	page, err := core.ConfigMaps(namespace).List(ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0"})
	told("a page", err, "%d", len(page.Items))
	maps := corev1.SchemeGroupVersion.WithResource("configmaps")
	bare, err := c.metadata.Resource(maps).Namespace(namespace).Get(ctx, "c", metav1.GetOptions{})
	if err != nil {
		return err
	}
	told("get metadata", nil, "%s %v %v", bare.Name, bare.Labels, bare.Annotations)
	all, err := c.metadata.Resource(maps).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	told("list metadata", nil, "%s", names(len(all.Items), func(i int) string { return all.Items[i].Name }))
	return c.watch(ctx)
}

// watch hears what is there already: the events of a WatchList, up to the bookmark behind them.
func (c *client) watch(ctx context.Context) error {
	initial := true
	options := metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	watcher, err := c.typed.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	heard := []string{}
	for event := range watcher.ResultChan() {
		object, is := event.Object.(*corev1.ConfigMap)
		if !is {
			return fmt.Errorf("an event of %T", event.Object)
		}
		if event.Type == watch.Bookmark {
			if object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
				break
			}
			continue
		}
		heard = append(heard, string(event.Type)+" "+object.Name)
	}
	sort.Strings(heard)
	told("watch maps", nil, "%s", strings.Join(heard, ", "))
	return ctx.Err()
}

// inform lets informers of both kinds sync, and tells what they hold.
func (c *client) inform(ctx context.Context) error {
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(namespace))
	maps, pods := factory.Core().V1().ConfigMaps(), factory.Core().V1().Pods()
	deployments, leases := factory.Apps().V1().Deployments(), factory.Coordination().V1().Leases()
	// Asked for once, an informer is one of the factory's.
	maps.Informer()
	pods.Informer()
	deployments.Informer()
	leases.Informer()
	bare := metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, namespace, nil)
	secrets := bare.ForResource(corev1.SchemeGroupVersion.WithResource("secrets"))
	secrets.Informer()
	factory.Start(inside.Done())
	bare.Start(inside.Done())
	for kind, synced := range factory.WaitForCacheSync(inside.Done()) {
		if !synced {
			return fmt.Errorf("%v is not synced", kind)
		}
	}
	bare.WaitForCacheSync(inside.Done())
	held, err := maps.Lister().List(labels.Everything())
	told("informed of maps", err, "%s", names(len(held), func(i int) string { return held[i].Name }))
	running, err := pods.Lister().List(labels.Everything())
	told("informed of pods", err, "%s", names(len(running), func(i int) string { return running[i].Name + " on " + running[i].Spec.NodeName }))
	deployed, err := deployments.Lister().List(labels.Everything())
	told("informed of deployments", err, "%s", names(len(deployed), func(i int) string { return deployed[i].Name }))
	hidden, err := secrets.Lister().List(labels.Everything())
	told("informed of secrets", err, "%d", len(hidden))
	return ctx.Err()
}

func names(count int, name func(int) string) string {
	all := make([]string, count)
	for i := range all {
		all[i] = name(i)
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}
