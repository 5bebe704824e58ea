package main

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
)

// forms counts the content types of what is sent and of what comes back.
type forms struct {
	mutex sync.Mutex
	sent  map[string]int
	got   map[string]int
}

type counting struct {
	forms *forms
	next  http.RoundTripper
}

func (f *forms) wrap(next http.RoundTripper) http.RoundTripper {
	return &counting{forms: f, next: next}
}

func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	c.forms.mutex.Lock()
	defer c.forms.mutex.Unlock()
	if request.Body != nil {
		c.forms.sent[bare(request.Header.Get("Content-Type"))]++
	}
	if err == nil {
		c.forms.got[bare(response.Header.Get("Content-Type"))]++
	}
	return response, err
}

func bare(contentType string) string {
	return strings.SplitN(contentType, ";", 2)[0]
}

// say tells which forms there were, not how often: informers ask as often as they like.
func (f *forms) say() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for name, counts := range map[string]map[string]int{"sent": f.sent, "got": f.got} {
		types := []string{}
		for one := range counts {
			types = append(types, one)
		}
		sort.Strings(types)
		fmt.Printf("forms %s: %s\n", name, strings.Join(types, " "))
	}
}
