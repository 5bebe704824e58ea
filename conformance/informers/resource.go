// The three resources under churn, as one shape: how an object is made, what a write may change, and what of an object
// an event is remembered by.
package main

import (
	"fmt"
	"math/rand"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	group      = "churn.ake.dev"
	serial     = "churn.ake.dev/serial"
	namespaces = 4
	nodes      = 5
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	widgets    = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	churned    = []schema.GroupVersionResource{pods, configMaps, widgets}

	apps   = []string{"a", "b", "c"}
	colors = []string{"red", "green", "blue"}
)

func namespaceName(index int) string { return fmt.Sprintf("churn-%d", index) }

// newObject is a fresh object; pods are bound to a node at once, because that cannot change later.
func newObject(of schema.GroupVersionResource, namespace, name string, number int64, random *rand.Rand) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": of.GroupVersion().String()}}
	switch of {
	case pods:
		object.SetKind("Pod")
		object.Object["spec"] = map[string]any{
			"nodeName":                      fmt.Sprintf("node-%d", random.Intn(nodes)),
			"restartPolicy":                 "Always",
			"terminationGracePeriodSeconds": int64(0),
			"containers": []any{map[string]any{
				"name": "main", "image": "registry.example/image:1", "imagePullPolicy": "IfNotPresent",
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			}},
		}
	case configMaps:
		object.SetKind("ConfigMap")
	default:
		object.SetKind("Widget")
	}
	object.SetNamespace(namespace)
	object.SetName(name)
	change(object, number, random)
	return object
}

// change is what a write does to an object: its serial tells which write made this content.
func change(object *unstructured.Unstructured, number int64, random *rand.Rand) {
	text := strconv.FormatInt(number, 10)
	object.SetAnnotations(map[string]string{serial: text})
	object.SetLabels(map[string]string{"app": apps[random.Intn(len(apps))]})
	switch object.GetKind() {
	case "ConfigMap":
		object.Object["data"] = map[string]any{"serial": text, "filler": filler[:random.Intn(len(filler))]}
	case "Widget":
		// Beyond 2^53: a server that reads numbers as floats would change it.
		object.Object["spec"] = map[string]any{"color": colors[random.Intn(len(colors))], "size": int64(1)<<53 + 2*number + 1}
	}
}

var filler = func() string {
	text := make([]byte, 2000)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	return string(text)
}()

// record is what is remembered of an object in a list or an event.
type record struct {
	Type   string `json:"type,omitempty"`
	Key    string `json:"key"`
	RV     int64  `json:"rv"`
	UID    string `json:"uid"`
	Serial string `json:"serial"`

	labels   labels.Set
	fields   map[string]string
	deleting bool
}

func recordOf(kind string, object runtime.Object) (record, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return record{}, err
	}
	version, err := strconv.ParseInt(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		return record{}, err
	}
	return record{
		Type: kind, Key: accessor.GetNamespace() + "/" + accessor.GetName(), RV: version,
		UID: string(accessor.GetUID()), Serial: accessor.GetAnnotations()[serial],
	}, nil
}

// fullRecordOf also keeps what selectors look at.
func fullRecordOf(kind string, object *unstructured.Unstructured) (record, error) {
	made, err := recordOf(kind, object)
	if err != nil {
		return made, err
	}
	node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
	color, _, _ := unstructured.NestedString(object.Object, "spec", "color")
	made.labels, made.deleting = object.GetLabels(), object.GetDeletionTimestamp() != nil
	made.fields = map[string]string{
		"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace(),
		"spec.nodeName": node, "spec.color": color,
	}
	return made, nil
}

func (r record) same(other record) bool {
	return r.Type == other.Type && r.Key == other.Key && r.RV == other.RV && r.UID == other.UID && r.Serial == other.Serial
}

func (r record) String() string {
	return fmt.Sprintf("%s %s rv=%d serial=%s uid=%s", r.Type, r.Key, r.RV, r.Serial, r.UID)
}

func widgetDefinition() *unstructured.Unstructured {
	property := func(kind string) map[string]any { return map[string]any{"type": kind} }
	size := property("integer")
	size["format"] = "int64"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"selectableFields": []any{map[string]any{"jsonPath": ".spec.color"}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": map[string]any{"type": "object", "properties": map[string]any{"color": property("string"), "size": size}},
				}}},
			}},
		},
	}}
}

func namespaceObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
}

// accountObject is what a real kube-apiserver wants to see before it takes a pod.
func accountObject(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default", "namespace": namespace},
	}}
}

func deleteNow(uid string) metav1.DeleteOptions {
	zero := int64(0)
	return metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(uid),
	}
}
