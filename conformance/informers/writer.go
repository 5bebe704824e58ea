// The churn: writers that own their keys, know what was acknowledged, and after a lost answer look what became of it.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	requestLimit = 30 * time.Second
	askAgain     = 50 * time.Millisecond
)

// written are the writes that took effect, each with the event it must have caused.
type written struct {
	mutex sync.Mutex
	// By version, of creates and updates.
	puts map[int64]record
	// By uid; a delete's answer need not tell its version.
	deletes map[string]record
	// Answers that were lost, and of these how many had taken effect.
	lost, landed int
	// Statuses other than success, by reason.
	refusals map[string]int
}

type churn struct {
	client dynamic.Interface
	written
	serial  atomic.Int64
	done    atomic.Int64
	limit   atomic.Int64
	writers []*writer
}

type key struct {
	of              schema.GroupVersionResource
	namespace, name string
	object          *unstructured.Unstructured
}

func newChurn(client dynamic.Interface, limit int64) *churn {
	made := &churn{client: client}
	made.limit.Store(limit)
	made.puts, made.deletes, made.refusals = map[int64]record{}, map[string]record{}, map[string]int{}
	return made
}

// writer owns its keys: nobody else writes to them.
type writer struct {
	own    []*key
	random *rand.Rand
}

// divide deals the keys among so many writers.
func (c *churn) divide(writers, keys int) {
	for number := range writers {
		made := &writer{random: rand.New(rand.NewSource(int64(number)))}
		for index := number; index < keys; index += writers {
			of := churned[index%len(churned)]
			number := index / len(churned)
			made.own = append(made.own, &key{of: of, namespace: namespaceName(number % namespaces), name: objectName(number / namespaces)})
		}
		c.writers = append(c.writers, made)
	}
}

// run returns when the writes up to the limit are done, or the context is; perSecond, unless 0, is about their rate.
func (c *churn) run(ctx context.Context, perSecond float64) {
	var group sync.WaitGroup
	for _, one := range c.writers {
		group.Go(func() {
			for c.done.Load() < c.limit.Load() && ctx.Err() == nil {
				c.write(context.WithoutCancel(ctx), one.own[one.random.Intn(len(one.own))], one.random)
				if perSecond > 0 {
					select {
					case <-ctx.Done():
					case <-time.After(time.Duration(float64(len(c.writers)) / perSecond * float64(time.Second))):
					}
				}
			}
		})
	}
	group.Wait()
}

// reload is for when the server's state has changed under the writers.
func (c *churn) reload(ctx context.Context) error {
	for _, one := range c.writers {
		for _, k := range one.own {
			found, err := c.objects(k).Get(ctx, k.name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			k.object = nil
			if err == nil {
				k.object = found
			}
		}
	}
	return nil
}

// sentinels are the last writes: who has seen them has seen everything before.
func (c *churn) sentinels(ctx context.Context) map[schema.GroupVersionResource]int64 {
	last := map[schema.GroupVersionResource]int64{}
	random := rand.New(rand.NewSource(0))
	for _, of := range churned {
		one := &key{of: of, namespace: namespaceName(3), name: "sentinel"}
		for one.object == nil && ctx.Err() == nil {
			c.write(ctx, one, random)
		}
		made, _ := recordOf("", one.object)
		last[of] = made.RV
	}
	return last
}

func (c *churn) objects(k *key) dynamic.ResourceInterface {
	return c.client.Resource(k.of).Namespace(k.namespace)
}

// write does one thing to a key and leaves in it what is now stored.
func (c *churn) write(ctx context.Context, k *key, random *rand.Rand) {
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	number := c.serial.Add(1)
	before := k.object
	switch choice := random.Intn(10); {
	case before == nil:
		made, err := c.objects(k).Create(limited, newObject(k.of, k.namespace, k.name, number, random), metav1.CreateOptions{})
		c.settle(ctx, k, number, made, err)
	case choice < 2:
		err := c.objects(k).Delete(limited, k.name, deleteNow(string(before.GetUID())))
		c.settleDelete(ctx, k, err)
	default:
		changed := before.DeepCopy()
		change(changed, number, random)
		made, err := c.objects(k).Update(limited, changed, metav1.UpdateOptions{})
		c.settle(ctx, k, number, made, err)
	}
}

func (c *churn) settle(ctx context.Context, k *key, number int64, made *unstructured.Unstructured, err error) {
	if err == nil {
		c.put(k, made)
		return
	}
	found := c.readBack(ctx, k, err)
	landed := found != nil && found.GetAnnotations()[serial] == strconv.FormatInt(number, 10)
	c.noteLost(landed)
	if landed {
		c.put(k, found)
	} else {
		k.object = found
	}
}

func (c *churn) settleDelete(ctx context.Context, k *key, err error) {
	before := k.object
	if err == nil {
		c.removed(k, before)
		return
	}
	found := c.readBack(ctx, k, err)
	// Marked, and the server ended before the second half: that deletion goes on, by itself or by asking again.
	for found != nil && found.GetDeletionTimestamp() != nil && ctx.Err() == nil {
		_ = c.objects(k).Delete(ctx, k.name, deleteNow(string(before.GetUID())))
		found = c.readBack(ctx, k, err)
	}
	landed := found == nil
	c.noteLost(landed)
	if landed {
		c.removed(k, before)
	} else {
		k.object = found
	}
}

// readBack asks until there is an answer; nil means that the object is not there.
func (c *churn) readBack(ctx context.Context, k *key, because error) *unstructured.Unstructured {
	if reason := apierrors.ReasonForError(because); reason != metav1.StatusReasonUnknown {
		c.mutex.Lock()
		c.refusals[fmt.Sprintf("%s: %v", reason, because)]++
		c.mutex.Unlock()
	}
	for ctx.Err() == nil {
		found, err := c.objects(k).Get(ctx, k.name, metav1.GetOptions{})
		if err == nil {
			return found
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		time.Sleep(askAgain)
	}
	return nil
}

func (c *churn) noteLost(landed bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lost++
	if landed {
		c.landed++
	}
}

func (c *churn) put(k *key, made *unstructured.Unstructured) {
	kind := "MODIFIED"
	if k.object == nil {
		kind = "ADDED"
	}
	k.object = made
	one, err := recordOf(kind, made)
	if err != nil {
		panic(err)
	}
	c.mutex.Lock()
	c.puts[one.RV] = one
	c.mutex.Unlock()
	c.done.Add(1)
}

func (c *churn) removed(k *key, before *unstructured.Unstructured) {
	k.object = nil
	one, err := recordOf("DELETED", before)
	if err != nil {
		panic(err)
	}
	c.mutex.Lock()
	c.deletes[one.UID] = one
	c.mutex.Unlock()
	c.done.Add(1)
}
