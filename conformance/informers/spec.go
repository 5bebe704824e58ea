// Which informers run: every way of asking that clients in the field use, over busy resources and over silent ones.
package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type spec struct {
	of        schema.GroupVersionResource
	namespace string
	labels    string
	fields    string
	// plain: LIST, then WATCH; otherwise one WatchList.
	plain bool
	// patient: a connection of its own that is dialled until the server is back; otherwise shared, with client-go's backoff.
	patient  bool
	http1    bool
	metadata bool
	// protobuf: asked for first, as kubelet and controllers do.
	protobuf bool
}

// choice narrows the ways of asking on the command line.
type choice struct {
	// json, protobuf, or both: each informer twice.
	accept string
	// plain, watchlist, or both: as specs says.
	lists string
	// If given, only what the kubelet of this node asks for.
	node string
}

func (c choice) specs() ([]spec, error) {
	all := specs()
	if c.node != "" {
		mine := spec{of: pods, fields: "spec.nodeName=" + c.node, patient: true}
		all = []spec{mine, mine}
		all[1].plain = true
	}
	var chosen []spec
	for _, one := range all {
		if c.lists != "both" && one.plain != (c.lists == "plain") {
			continue
		}
		if c.accept != "protobuf" {
			chosen = append(chosen, one)
		}
		// Custom resources have no protobuf.
		if c.accept != "json" && (one.of != widgets || c.accept == "protobuf") {
			one.protobuf = one.of != widgets
			chosen = append(chosen, one)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("nothing is left of %+v", c)
	}
	return chosen, nil
}

func specs() []spec {
	all := []spec{
		{of: pods, metadata: true, patient: true},
		{of: pods, plain: true, http1: true, patient: true},
		{of: configMaps, http1: true, patient: true},
		{of: secrets, patient: true},
		{of: secrets, plain: true, patient: true},
		{of: secrets, plain: true},
		{of: widgets, fields: "spec.color=red", patient: true},
		{of: widgets, fields: "spec.color!=red", plain: true, patient: true},
		{of: pods, fields: "metadata.name=absent", patient: true},
		{of: pods, fields: "spec.nodeName=node-0,metadata.namespace=churn-1", plain: true, patient: true},
		{of: pods, namespace: "churn-2", labels: "app=a", fields: "spec.nodeName=node-1", patient: true},
	}
	for node := range nodes {
		all = append(all, spec{of: pods, fields: fmt.Sprintf("spec.nodeName=node-%d", node), plain: node%2 == 1, patient: node > 0})
	}
	for _, of := range churned {
		all = append(all,
			spec{of: of, patient: true},
			spec{of: of, plain: true, patient: true},
			spec{of: of},
			spec{of: of, plain: true},
			spec{of: of, labels: "app=a", patient: true},
			spec{of: of, labels: "app in (a,b),app!=b", plain: true, patient: true},
			spec{of: of, namespace: namespaceName(1), plain: true, patient: true},
			spec{of: of, namespace: namespaceName(2), patient: true},
			spec{of: of, namespace: namespaceName(0), fields: "metadata.name=" + objectName(0), patient: true},
		)
	}
	return all
}

func objectName(index int) string { return fmt.Sprintf("object-%03d", index) }

func (s spec) narrow(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = s.labels, s.fields
}

// matcher is the selector as this program understands it, not the server.
func (s spec) matcher() (func(record) bool, error) {
	byLabel, err := labels.Parse(s.labels)
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(s.fields)
	if err != nil {
		return nil, err
	}
	return func(one record) bool {
		inside := s.namespace == "" || strings.HasPrefix(one.Key, s.namespace+"/")
		return inside && byLabel.Matches(one.labels) && byField.Matches(fields.Set(one.fields))
	}, nil
}

func (s spec) String() string {
	words := []string{s.of.Resource}
	for _, word := range []string{s.namespace, s.labels, s.fields} {
		if word != "" {
			words = append(words, word)
		}
	}
	how := map[bool]string{true: "list+watch", false: "watchlist"}[s.plain]
	if s.metadata {
		how += ", metadata"
	}
	if s.protobuf {
		how += ", protobuf"
	}
	if s.http1 {
		how += ", http/1.1"
	}
	if !s.patient {
		how += ", shared connection"
	}
	return strings.Join(words, " ") + " (" + how + ")"
}
