// Real informers of client-go under churn, while somebody else restarts the server: prints one JSON line when they are
// synced, one per progress, and after the line "finish" on standard input a report of what was lost or asked again.
// With -direct it is driven step by step instead: see phases.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	progressEvery = 100 * time.Millisecond
	// Informers without a patient dialler may sleep for a minute before they ask again.
	judgeWithin = 150 * time.Second
)

type line struct {
	Event     string `json:"event"`
	Writes    int64  `json:"writes"`
	Informers int    `json:"informers,omitempty"`
}

type verdict struct {
	Name       string         `json:"name"`
	Events     int            `json:"events"`
	Handled    int            `json:"handled"`
	Lists      int            `json:"lists"`
	Relists    int            `json:"relists"`
	Excused    int            `json:"excused"`
	SelfClosed int            `json:"selfClosed"`
	Watches    int            `json:"watches"`
	Statuses   map[int]int    `json:"statuses"`
	Failures   map[string]int `json:"failures"`
	Reasons    []string       `json:"reasons"`
	Faults     []string       `json:"faults"`
}

type report struct {
	Event     string         `json:"event"`
	Writes    int64          `json:"writes"`
	History   int            `json:"history"`
	Lost      int            `json:"lost"`
	Landed    int            `json:"landed"`
	Refusals  map[string]int `json:"refusals"`
	Faults    []string       `json:"faults"`
	Informers []verdict      `json:"informers"`
}

func main() {
	klog.InitFlags(nil)
	_ = flag.Set("logtostderr", "true")
	path := flag.String("kubeconfig", "", "how to reach the server")
	writes := flag.Int64("writes", 50_000, "how many writes")
	keys := flag.Int("keys", 500, "how many objects they go to")
	writers := flag.Int("writers", 16, "how many writers at the same time")
	truth := flag.String("direct", "", "how to write and verify, if not where the informers read")
	var chosen choice
	flag.StringVar(&chosen.accept, "accept", "json", "json, protobuf or both")
	flag.StringVar(&chosen.lists, "lists", "both", "plain, watchlist or both")
	flag.StringVar(&chosen.node, "node", "", "only what the kubelet of this node asks for")
	flag.Parse()
	base, err := clientcmd.BuildConfigFromFlags("", *path)
	switch {
	case err != nil:
	case *truth == "":
		err = run(context.Background(), base, chosen, *writes, *keys, *writers)
	default:
		var direct *rest.Config
		if direct, err = clientcmd.BuildConfigFromFlags("", *truth); err == nil {
			err = runPhases(context.Background(), base, direct, chosen, *keys, *writers)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base *rest.Config, chosen choice, writes int64, keys, writers int) error {
	wanted, err := chosen.specs()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(configure(base, true))
	if err != nil {
		return err
	}
	start, err := prepare(ctx, client)
	if err != nil {
		return err
	}
	churn := newChurn(client, writes)
	churn.divide(writers, keys)
	ended := make(chan struct{})
	go func() {
		churn.run(ctx, 0)
		close(ended)
	}()
	// The first lists and watches are taken in a moving system, too.
	for churn.done.Load() < int64(keys) {
		time.Sleep(askAgain)
	}
	informers, err := begin(ctx, base, base, wanted, rules{everyEvent: true})
	if err != nil {
		return err
	}
	say(line{Event: "synced", Writes: churn.done.Load(), Informers: len(informers)})
	finish := make(chan struct{})
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		close(finish)
	}()
	tick := time.NewTicker(progressEvery)
	for waiting := true; waiting; {
		select {
		case <-tick.C:
			say(line{Event: "progress", Writes: churn.done.Load()})
		case <-finish:
			waiting = false
		}
	}
	<-ended
	say(judge(ctx, client, churn, informers, start))
	return nil
}

// begin starts the informers and waits for their first sync.
func begin(ctx context.Context, base, direct *rest.Config, wanted []spec, rules rules) ([]*informer, error) {
	var informers []*informer
	for _, of := range wanted {
		made, err := newInformer(base, direct, of, rules)
		if err != nil {
			return nil, err
		}
		informers = append(informers, made)
		go made.shared.RunWithContext(ctx)
	}
	for _, one := range informers {
		if !cache.WaitForCacheSync(ctx.Done(), one.shared.HasSynced) {
			return nil, fmt.Errorf("%v did not sync", one.spec)
		}
		one.traffic.mutex.Lock()
		one.traffic.synced = true
		one.traffic.mutex.Unlock()
	}
	return informers, nil
}

func judge(ctx context.Context, client dynamic.Interface, churn *churn, informers []*informer, start int64) report {
	made := report{Event: "report", Refusals: churn.refusals}
	all := map[schema.GroupVersionResource][]record{}
	for of, last := range churn.sentinels(ctx) {
		events, err := history(ctx, client, of, start, last)
		if err != nil {
			made.Faults = append(made.Faults, err.Error())
		}
		all[of] = events
		made.History += len(events)
	}
	made.Writes, made.Lost, made.Landed = churn.done.Load(), churn.lost, churn.landed
	made.Faults = append(made.Faults, churn.against(all)...)
	giveUp := time.Now().Add(judgeWithin)
	for _, one := range informers {
		faults := one.judge(ctx, all[one.spec.of], giveUp)
		one.traffic.mutex.Lock()
		made.Informers = append(made.Informers, verdict{
			Name: one.spec.String(), Events: one.seen(), Handled: one.handled, Faults: faults,
			Lists: one.traffic.lists, Relists: one.traffic.relists, Excused: one.traffic.excused, SelfClosed: one.traffic.selfClosed, Watches: one.traffic.watches,
			Statuses: one.traffic.statuses, Failures: one.traffic.failures, Reasons: one.traffic.reasons,
		})
		one.traffic.mutex.Unlock()
	}
	return made
}

// prepare makes what the churn needs and tells the version at which it begins.
func prepare(ctx context.Context, client dynamic.Interface) (int64, error) {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if err := create(ctx, client.Resource(definitions), widgetDefinition()); err != nil {
		return 0, err
	}
	for index := range namespaces {
		name := namespaceName(index)
		spaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
		if err := create(ctx, client.Resource(spaces), namespaceObject(name)); err != nil {
			return 0, err
		}
		if err := create(ctx, client.Resource(accounts).Namespace(name), accountObject(name)); err != nil {
			return 0, err
		}
	}
	for {
		list, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
		if err == nil {
			return strconv.ParseInt(list.GetResourceVersion(), 10, 64)
		}
		if !apierrors.IsNotFound(err) {
			return 0, err
		}
		time.Sleep(askAgain)
	}
}

func create(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	_, err := objects.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func say(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
