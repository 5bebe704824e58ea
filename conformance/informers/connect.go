// How clients reach the server: patient ones dial until it listens again, so that they resume in the first moment of its
// new life; the others leave that to client-go, which backs off.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

const (
	dialAgain   = 10 * time.Millisecond
	dialGiveUp  = 60 * time.Second
	streamsIdle = 30 * time.Second
)

func patientDial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second, KeepAlive: streamsIdle}
	end := time.Now().Add(dialGiveUp)
	for {
		connection, err := dialer.DialContext(ctx, network, address)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(end) {
			return connection, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialAgain):
		}
	}
}

// configure is a copy of the base configuration that asks for JSON and has no limit of its own on requests.
func configure(base *rest.Config, patient bool) *rest.Config {
	config := rest.CopyConfig(base)
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.QPS = -1
	if patient {
		config.Dial = patientDial
	}
	return config
}

// preferProtobuf asks as kubelet and controllers do: protobuf, or JSON where there is none.
func preferProtobuf(config *rest.Config) {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
}

// traffic counts what one informer asks for. Before the first sync lists are its right; after it each one is a relist.
type traffic struct {
	mutex   sync.Mutex
	next    http.RoundTripper
	synced  bool
	lists   int
	relists int
	// Relists that no server can spare its clients: client-go lists again after a watch that ended within a second without
	// an event, and this one was cut before any server's first event can be expected to have arrived.
	excused int
	// The same after a server was killed, where Go's HTTP/2 found that by writing to the connection before it had read the reset: it
	// closes the connection itself, and client-go takes that for an event that cannot be decoded.
	selfClosed int
	watches    int
	// The last watch was cut as it began.
	cutAtOnce bool
	// The last watch ended with its client's own connection.
	closedHere bool
	// Why the last watches ended, for the report of a relist.
	trace []string
	// What was asked again after the sync.
	reasons  []string
	statuses map[int]int
	failures map[string]int
}

const traceLines = 6

// A server on a busy machine may need this long to answer a watch with its first event.
const firstEventWithin = 200 * time.Millisecond

func (t *traffic) ended(after time.Duration, events int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.cutAtOnce = events == 0 && after < firstEventWithin
	t.noteLocked(fmt.Sprintf("ended after %d ms, %d events", after.Milliseconds(), events))
}

// What Go's HTTP/2 says of a connection that it closed because a write to it had failed.
const closedHere = "client connection force closed via ClientConn.Close"

func (t *traffic) failed(event string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.closedHere = strings.Contains(event, closedHere)
	t.noteLocked("ERROR event: " + event)
}

func (t *traffic) note(line string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.noteLocked(line)
}

func (t *traffic) noteLocked(line string) {
	t.trace = append(t.trace, time.Now().Format("15:04:05.000 ")+line)
	if len(t.trace) > traceLines {
		t.trace = t.trace[1:]
	}
}

func (t *traffic) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	t.mutex.Lock()
	switch {
	case query.Get("watch") == "" || query.Get("watch") == "false":
		t.listedLocked("LIST " + request.URL.RequestURI())
	case query.Get("sendInitialEvents") == "true":
		t.listedLocked("WATCHLIST " + request.URL.RequestURI())
	default:
		t.watches++
		t.cutAtOnce, t.closedHere = false, false
		t.noteLocked("WATCH from " + query.Get("resourceVersion"))
	}
	t.mutex.Unlock()
	response, err := t.next.RoundTrip(request)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err != nil {
		t.failures[failureName(err)]++
		t.noteLocked("failed: " + err.Error())
	} else {
		t.statuses[response.StatusCode]++
		if response.StatusCode != http.StatusOK {
			t.noteLocked("status " + response.Status)
		}
	}
	return response, err
}

func (t *traffic) listedLocked(what string) {
	if !t.synced {
		t.lists++
		return
	}
	if t.cutAtOnce {
		t.excused++
		return
	}
	if t.closedHere {
		t.closedHere = false
		t.selfClosed++
		return
	}
	t.relists++
	if len(t.reasons) >= faultsMax {
		return
	}
	t.reasons = append(t.reasons, what+" after: "+strings.Join(t.trace, " | "))
}

func failureName(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	default:
		text := err.Error()
		if at := strings.LastIndex(text, ": "); at >= 0 {
			text = text[at+2:]
		}
		return text
	}
}
