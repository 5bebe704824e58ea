// What a pod keeps: files that its containers share, and a log of each container.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Enough for every proof; older lines go.
const logLinesMax = 10_000

type pod struct {
	mutex sync.Mutex
	name  string
	files map[string][]byte
	logs  map[string]*log
}

func newPod(name string) *pod {
	return &pod{name: name, files: map[string][]byte{"/etc/hostname": []byte(name + "\n")}, logs: map[string]*log{}}
}

func (p *pod) log(container string) *log {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.logs[container] == nil {
		p.logs[container] = &log{changed: make(chan struct{})}
		p.logs[container].append("started " + p.name + "/" + container)
	}
	return p.logs[container]
}

type logLine struct {
	at   time.Time
	text string
}

type log struct {
	mutex sync.Mutex
	lines []logLine
	// How many lines were removed at the front.
	gone int
	// Closed and replaced with each line.
	changed chan struct{}
}

type logOptions struct {
	follow, timestamps bool
	// Negative: all.
	tail int
}

func (l *log) append(text string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, logLine{time.Now().UTC(), text})
	if len(l.lines) > logLinesMax {
		l.lines, l.gone = l.lines[1:], l.gone+1
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// from returns the lines from an absolute number on, the number of the next one, and what tells that there are more.
func (l *log) from(number int) ([]logLine, int, <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.lines[max(number-l.gone, 0):], l.gone + len(l.lines), l.changed
}

// copy writes what is there and, if asked, what comes, until the reader is gone.
func (l *log) copy(ctx context.Context, out io.Writer, asked logOptions) {
	lines, next, changed := l.from(0)
	if asked.tail >= 0 && asked.tail < len(lines) {
		lines = lines[len(lines)-asked.tail:]
	}
	for {
		var text strings.Builder
		for _, line := range lines {
			if asked.timestamps {
				text.WriteString(line.at.Format(time.RFC3339Nano) + " ")
			}
			text.WriteString(line.text + "\n")
		}
		if text.Len() > 0 {
			if _, err := fmt.Fprint(out, text.String()); err != nil {
				return
			}
		}
		if !asked.follow {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		lines, next, changed = l.from(next)
	}
}
