// Prints what the Go types of Kubernetes tell about their protobuf and JSON forms, one line per kind and per message: the
// order of members in JSON, what is left out when empty, and which Go field an error names stand in no .proto file. With
// arguments like "v1 Pod 100" it prints an object of that kind instead, filled to so many hundredths.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	discoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type kindLine struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Message    string `json:"message"`
}

type messageLine struct {
	Name string `json:"name"`
	// struct, or how a type of another form is built: slice
	Form string `json:"form"`
	// It has JSON of its own making.
	Own    bool        `json:"own,omitempty"`
	Fields []fieldLine `json:"fields"`
}

type fieldLine struct {
	JSON   string `json:"json"`
	Go     string `json:"go"`
	Proto  string `json:"proto"`
	Number int    `json:"number"`
	// one, many or map
	Shape string `json:"shape"`
	// string, bool, int32, int64, float64, bytes, or the name of a message
	Type      string `json:"type"`
	Pointer   bool   `json:"pointer,omitempty"`
	OmitEmpty bool   `json:"omitEmpty,omitempty"`
	OmitZero  bool   `json:"omitZero,omitempty"`
	Inline    bool   `json:"inline,omitempty"`
}

type protobufMarshaler interface{ Marshal() ([]byte, error) }

var (
	marshaler     = reflect.TypeOf((*protobufMarshaler)(nil)).Elem()
	jsonMarshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
	seen          = map[reflect.Type]bool{}
	queue         []reflect.Type
)

func main() {
	encoder := json.NewEncoder(os.Stdout)
	all := scheme.Scheme
	utilruntime.Must(apiextensions.AddToScheme(all))
	utilruntime.Must(apiregistration.AddToScheme(all))
	utilruntime.Must(discoveryv2.AddToScheme(all))
	utilruntime.Must(discoveryv2beta1.AddToScheme(all))
	utilruntime.Must(metav1.AddMetaToScheme(all))
	if len(os.Args) > 1 {
		for _, wanted := range os.Args[1:] {
			parts := strings.Split(wanted, " ")
			fullness, err := strconv.Atoi(parts[2])
			must(err)
			must(encoder.Encode(filled(all, schema.FromAPIVersionAndKind(parts[0], parts[1]), fullness)))
		}
		return
	}
	var kinds []kindLine
	for gvk, typ := range all.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || !isMessage(typ) {
			continue
		}
		kinds = append(kinds, kindLine{gvk.GroupVersion().String(), gvk.Kind, nameOf(typ)})
		visit(typ)
	}
	visit(reflect.TypeOf(runtime.Unknown{}))
	sort.Slice(kinds, func(a, b int) bool {
		return kinds[a].APIVersion+" "+kinds[a].Kind < kinds[b].APIVersion+" "+kinds[b].Kind
	})
	for _, kind := range kinds {
		must(encoder.Encode(kind))
	}
	for len(queue) > 0 {
		typ := queue[0]
		queue = queue[1:]
		must(encoder.Encode(describe(typ)))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func isMessage(typ reflect.Type) bool {
	return typ.Name() != "" && reflect.PointerTo(typ).Implements(marshaler)
}

func nameOf(typ reflect.Type) string { return typ.PkgPath() + "." + typ.Name() }

func visit(typ reflect.Type) {
	if !seen[typ] {
		seen[typ] = true
		queue = append(queue, typ)
	}
}

func describe(typ reflect.Type) messageLine {
	line := messageLine{Name: nameOf(typ), Form: typ.Kind().String(), Own: reflect.PointerTo(typ).Implements(jsonMarshaler)}
	if typ.Kind() != reflect.Struct {
		if typ.Kind() != reflect.Slice || typ.Elem().Kind() != reflect.String {
			must(fmt.Errorf("%s is of another form: %s", line.Name, typ))
		}
		return line
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag := field.Tag.Get("protobuf")
		if tag == "" || tag == "-" {
			if name := field.Tag.Get("json"); name != "-" && field.Name != "TypeMeta" && !line.Own {
				fmt.Fprintf(os.Stderr, "%s.%s (%s) has no protobuf form\n", line.Name, field.Name, name)
			}
			continue
		}
		line.Fields = append(line.Fields, fieldOf(line, field, tag))
	}
	return line
}

func fieldOf(message messageLine, field reflect.StructField, tag string) fieldLine {
	parts := strings.Split(tag, ",")
	number, err := strconv.Atoi(parts[1])
	must(err)
	line := fieldLine{Go: field.Name, Proto: strings.ToLower(field.Name[:1]) + field.Name[1:], Number: number, Shape: "one"}
	for _, part := range parts {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			line.Proto = name
		}
	}
	options := strings.Split(field.Tag.Get("json"), ",")
	line.JSON = options[0]
	for _, option := range options[1:] {
		line.OmitEmpty = line.OmitEmpty || option == "omitempty"
		line.OmitZero = line.OmitZero || option == "omitzero"
		line.Inline = line.Inline || option == "inline"
	}
	if line.Inline != field.Anonymous && line.JSON == "" && !message.Own {
		must(fmt.Errorf("%s.%s is inline and not embedded, or the reverse", message.Name, field.Name))
	}
	typ := field.Type
	if typ.Kind() == reflect.Pointer {
		line.Pointer = true
		typ = typ.Elem()
	}
	if !isMessage(typ) {
		if typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8 {
			line.Shape = "many"
			typ = typ.Elem()
		} else if typ.Kind() == reflect.Map {
			if typ.Key().Kind() != reflect.String {
				must(fmt.Errorf("%s.%s is a map by something else than strings", message.Name, field.Name))
			}
			line.Shape = "map"
			typ = typ.Elem()
		}
	}
	line.Type = typeOf(message, field, typ)
	return line
}

func typeOf(message messageLine, field reflect.StructField, typ reflect.Type) string {
	if isMessage(typ) {
		visit(typ)
		return nameOf(typ)
	}
	switch typ.Kind() {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		return typ.Kind().String()
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
	}
	must(fmt.Errorf("%s.%s is of a type that no field had so far: %s", message.Name, field.Name, typ))
	return ""
}
