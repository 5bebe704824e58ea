// The informers as a driver's instrument: they read in one place (an edge), writers write in another (the API server), and
// lines on standard input say what comes next, so that the driver can cut, restart and compact in between. Each line is
// answered by one JSON line:
//
//	write N         writes so often, then answers "wrote"
//	churn RATE      writes about so many times a second from now on, 0 ends it; "churning"
//	status          "status": what each informer has asked for and seen so far
//	verify SECONDS  waits until each informer holds what a direct list shows, for so long at most; "verified"
//	restored        the API server was set back: versions may be lower once, until the next verify; "forgiven"
//	finish          ends the program
package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

type standing struct {
	Name     string         `json:"name"`
	Objects  int            `json:"objects"`
	Events   int            `json:"events"`
	Handled  int            `json:"handled"`
	Lists    int            `json:"lists"`
	Relists  int            `json:"relists"`
	Watches  int            `json:"watches"`
	Missed   int            `json:"missed"`
	Repeated int            `json:"repeated"`
	Statuses map[int]int    `json:"statuses"`
	Failures map[string]int `json:"failures"`
	Reasons  []string       `json:"reasons"`
	Faults   []string       `json:"faults"`
}

type state struct {
	Event     string         `json:"event"`
	Writes    int64          `json:"writes"`
	Refusals  map[string]int `json:"refusals,omitempty"`
	Informers []standing     `json:"informers,omitempty"`
	Error     string         `json:"error,omitempty"`
}

type phases struct {
	churn     *churn
	informers []*informer
	// Ends the churn and waits for it; nil while there is none.
	quiet func()
}

func runPhases(ctx context.Context, base, direct *rest.Config, chosen choice, keys, writers int) error {
	client, err := dynamic.NewForConfig(configure(direct, true))
	if err != nil {
		return err
	}
	wanted, err := chosen.specs()
	if err != nil {
		return err
	}
	if _, err := prepare(ctx, client); err != nil {
		return err
	}
	p := &phases{churn: newChurn(client, 0)}
	p.churn.divide(writers, keys)
	// An earlier run of this program may have left some.
	if err := p.churn.reload(ctx); err != nil {
		return err
	}
	p.write(ctx, int64(keys))
	if p.informers, err = begin(ctx, base, direct, wanted, rules{}); err != nil {
		return err
	}
	say(line{Event: "synced", Writes: p.churn.done.Load(), Informers: len(p.informers)})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if words[0] == "finish" {
			break
		}
		amount := 0.0
		if len(words) > 1 {
			if amount, err = strconv.ParseFloat(words[1], 64); err != nil {
				return err
			}
		}
		say(p.obey(ctx, words[0], amount))
	}
	p.rest()
	return lines.Err()
}

func (p *phases) obey(ctx context.Context, word string, amount float64) state {
	made := state{}
	switch word {
	case "write":
		p.rest()
		p.write(ctx, int64(amount))
		made.Event = "wrote"
	case "churn":
		p.rest()
		if amount > 0 {
			p.keepWriting(ctx, amount)
		}
		made.Event = "churning"
	case "status":
		made.Event = "status"
		for _, one := range p.informers {
			made.Informers = append(made.Informers, one.standing(nil))
		}
	case "verify":
		p.rest()
		made.Event = "verified"
		made.Informers = p.verify(ctx, time.Duration(amount*float64(time.Second)))
	case "restored":
		p.rest()
		made.Event = "forgiven"
		for _, one := range p.informers {
			one.forgive(true)
		}
		if err := p.churn.reload(ctx); err != nil {
			made.Error = err.Error()
		}
	default:
		made.Event, made.Error = "unknown", fmt.Sprintf("no such phase: %s", word)
	}
	made.Writes = p.churn.done.Load()
	p.churn.mutex.Lock()
	defer p.churn.mutex.Unlock()
	if len(p.churn.refusals) > 0 {
		made.Refusals = map[string]int{}
		for reason, count := range p.churn.refusals {
			made.Refusals[reason] = count
		}
	}
	return made
}

func (p *phases) write(ctx context.Context, count int64) {
	p.churn.limit.Store(p.churn.done.Load() + count)
	p.churn.run(ctx, 0)
}

func (p *phases) keepWriting(ctx context.Context, perSecond float64) {
	p.churn.limit.Store(math.MaxInt64)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.churn.run(ctx, perSecond)
	}()
	p.quiet = func() {
		cancel()
		<-ended
	}
}

// rest: a phase that compares needs a world that stands still.
func (p *phases) rest() {
	if p.quiet != nil {
		p.quiet()
		p.quiet = nil
	}
}

func (p *phases) verify(ctx context.Context, limit time.Duration) []standing {
	giveUp := time.Now().Add(limit)
	var all []standing
	for _, one := range p.informers {
		differences := one.compareStore(ctx)
		for len(differences) > 0 && time.Now().Before(giveUp) {
			time.Sleep(askAgain)
			differences = one.compareStore(ctx)
		}
		one.forgive(false)
		all = append(all, one.standing(differences))
	}
	return all
}

func (i *informer) forgive(forgiven bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.rules.forgiven = forgiven
}

func (i *informer) isForgiven() bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.rules.forgiven
}

func (i *informer) standing(differences []string) standing {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.traffic.mutex.Lock()
	defer i.traffic.mutex.Unlock()
	copied := func(from map[string]int) map[string]int {
		made := map[string]int{}
		for name, count := range from {
			made[name] = count
		}
		return made
	}
	statuses := map[int]int{}
	for status, count := range i.traffic.statuses {
		statuses[status] = count
	}
	return standing{
		Name: i.spec.String(), Objects: len(i.shared.GetStore().ListKeys()), Events: i.count, Handled: i.handled,
		Lists: i.traffic.lists, Relists: i.traffic.relists + i.traffic.excused, Watches: i.traffic.watches,
		Missed: i.missed, Repeated: i.repeated, Statuses: statuses, Failures: copied(i.traffic.failures),
		Reasons: append([]string(nil), i.traffic.reasons...), Faults: append(append([]string(nil), i.faults...), differences...),
	}
}
