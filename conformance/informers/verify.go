// The verdict: one uncut watch per resource is the whole truth, checked against what writers were told; from it follows
// what every informer must have seen, event by event.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// history is everything that happened to one resource from the version at the start to its sentinel.
func history(ctx context.Context, client dynamic.Interface, of schema.GroupVersionResource, from, to int64) ([]record, error) {
	stream, err := client.Resource(of).Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(from, 10)})
	if err != nil {
		return nil, err
	}
	defer stream.Stop()
	var all []record
	for event := range stream.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return nil, fmt.Errorf("the uncut watch of %s ended with %v", of.Resource, event.Object)
		}
		one, err := fullRecordOf(string(event.Type), object)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		if one.RV >= to {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the uncut watch of %s ended after %d events", of.Resource, len(all))
}

// against compares the truth with the writers' knowledge: nothing acknowledged is missing, nothing else happened.
func (c *churn) against(all map[schema.GroupVersionResource][]record) []string {
	var faults []string
	puts, deletes := map[int64]bool{}, map[string]bool{}
	for _, events := range all {
		last := map[string]record{}
		version := int64(0)
		for _, event := range events {
			if event.RV <= version {
				faults = append(faults, fmt.Sprintf("history goes back: %v after %d", event, version))
			}
			version = event.RV
			before, existed := last[event.Key]
			if existed == (event.Type == "ADDED") {
				faults = append(faults, fmt.Sprintf("history: %v while it existed: %v", event, existed))
			}
			if event.Type != "DELETED" {
				last[event.Key] = event
				// A pod's deletion is two events: marked, then gone.
				if event.deleting && event.Type == "MODIFIED" && event.Serial == before.Serial {
					continue
				}
				puts[event.RV] = true
				if told, ok := c.puts[event.RV]; !ok || !told.same(event) {
					faults = append(faults, fmt.Sprintf("history: %v, but its writer was told %v", event, told))
				}
				continue
			}
			delete(last, event.Key)
			deletes[event.UID] = true
			if _, ok := c.deletes[event.UID]; !ok || before.Serial != event.Serial {
				faults = append(faults, fmt.Sprintf("history: %v, but nobody deleted it, or not in this state", event))
			}
		}
	}
	for version, put := range c.puts {
		if !puts[version] {
			faults = append(faults, fmt.Sprintf("history lacks %v", put))
		}
	}
	for uid, one := range c.deletes {
		if !deletes[uid] {
			faults = append(faults, fmt.Sprintf("history lacks %v", one))
		}
	}
	return faults
}

// expected is what a watch with this selector must have shown from a version on, and the state it began with.
func expected(of spec, events []record, start int64) (initial map[string]record, after []record, err error) {
	matches, err := of.matcher()
	if err != nil {
		return nil, nil, err
	}
	state := map[string]record{}
	initial = map[string]record{}
	for _, event := range events {
		before, existed := state[event.Key]
		matched := existed && matches(before)
		exists := event.Type != "DELETED"
		now := exists && matches(event)
		if exists {
			state[event.Key] = event
		} else {
			delete(state, event.Key)
		}
		if event.RV <= start {
			if now {
				initial[event.Key] = event
			} else {
				delete(initial, event.Key)
			}
			continue
		}
		switch seen := event; {
		case matched && !now:
			seen.Type, seen.Serial = "DELETED", before.Serial
			after = append(after, seen)
		case !matched && now:
			seen.Type = "ADDED"
			after = append(after, seen)
		case matched:
			seen.Type = "MODIFIED"
			after = append(after, seen)
		}
	}
	return initial, after, nil
}

// judge waits until the informer has seen as much as there is, or for so long, then compares.
func (i *informer) judge(ctx context.Context, events []record, giveUp time.Time) []string {
	i.mutex.Lock()
	start, initial := i.start, i.initial
	i.mutex.Unlock()
	first, after, err := expected(i.spec, events, start)
	if err != nil {
		return []string{err.Error()}
	}
	for time.Now().Before(giveUp) && (i.seen() < len(after) || i.pending(len(first)+len(after))) {
		time.Sleep(askAgain)
	}
	i.mutex.Lock()
	seen := i.events
	faults := append([]string(nil), i.faults...)
	i.mutex.Unlock()
	if len(initial) != len(first) {
		faults = append(faults, fmt.Sprintf("began with %d objects, %d existed", len(initial), len(first)))
	}
	for _, one := range initial {
		if truth := first[one.Key]; truth.RV != one.RV || truth.Serial != one.Serial {
			faults = append(faults, fmt.Sprintf("began with %v, true was %v", one, truth))
		}
	}
	for at := range max(len(seen), len(after)) {
		switch {
		case at >= len(seen):
			return append(faults, fmt.Sprintf("saw %d of %d events; the next is %v", len(seen), len(after), after[at]))
		case at >= len(after):
			return append(faults, fmt.Sprintf("saw %d events instead of %d; one more is %v", len(seen), len(after), seen[at]))
		case !seen[at].same(after[at]):
			return append(faults, fmt.Sprintf("event %d of %d is %v, true is %v", at, len(after), seen[at], after[at]))
		}
	}
	return append(faults, i.compareStore(ctx)...)
}

func (i *informer) seen() int {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return len(i.events)
}

// pending: handlers hear of each event, and of each first object, once.
func (i *informer) pending(all int) bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.handled < all
}

// compareStore: the informer's store and a fresh list have the same objects, byte for byte once printed.
func (i *informer) compareStore(ctx context.Context) []string {
	options := metav1.ListOptions{}
	i.spec.narrow(&options)
	list, err := i.fresh.list(ctx, options)
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	listed := 0
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		listed++
		accessor, _ := meta.Accessor(item)
		held, ok, _ := i.shared.GetStore().GetByKey(accessor.GetNamespace() + "/" + accessor.GetName())
		if !ok {
			faults = append(faults, fmt.Sprintf("the store lacks %s/%s", accessor.GetNamespace(), accessor.GetName()))
		} else if have, want := printed(held.(runtime.Object)), printed(item); !bytes.Equal(have, want) {
			faults = append(faults, fmt.Sprintf("the store has %s, the list %s", have, want))
		}
		return nil
	})
	if count := len(i.shared.GetStore().List()); count != listed {
		faults = append(faults, fmt.Sprintf("the store has %d objects, the list %d", count, listed))
	}
	return faults
}

func printed(object runtime.Object) []byte {
	plain := object.DeepCopyObject()
	plain.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	text, err := json.Marshal(plain)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
