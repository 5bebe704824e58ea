// Objects with every field filled, in both forms, made by the very types that kube-apiserver is built of.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type filledLine struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Both in base64, as kube-apiserver would write them.
	Message string `json:"message"`
	JSON    string `json:"json"`
}

type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// An object of the kind, the fuller the higher `fullness` is: at 100 every field is there.
func filled(all *runtime.Scheme, kind schema.GroupVersionKind, fullness int) filledLine {
	object, err := all.New(kind)
	must(err)
	typed := object.(message)
	fill(reflect.ValueOf(typed).Elem(), rand.New(rand.NewSource(1)), fullness, 0)
	bytes, err := typed.Marshal()
	must(err)
	// Nil and empty are the same in a message.
	again, err := all.New(kind)
	must(err)
	must(again.(message).Unmarshal(bytes))
	var text strings.Builder
	must(json.NewEncoder(&text).Encode(again))
	printed := strings.TrimSuffix(text.String(), "\n")
	return filledLine{kind.GroupVersion().String(), kind.Kind, encoded(bytes), encoded([]byte(printed))}
}

func encoded(bytes []byte) string { return base64.StdEncoding.EncodeToString(bytes) }

// Only schemas hold themselves.
const depthMax = 12

var texts = []string{"", "a", "name", "with \"quotes\" and \\", "<&>", "äöü €", "line\nbreak\t\u2028", "日本語 \U0001F600", "0", "a.b/c-d", "\u0000\u001f\u007f"}
var quantities = []string{"0", "1", "100m", "1500m", "1.5", "64Mi", "1Gi", "1000", "1024Ki", "12e6", "0.5Gi", "-3", "123456789012345678901", "1n", "3T", "1.500"}
var raws = []string{`{"a":1}`, `{"kind":"X","apiVersion":"v1","z":[1,2.50,"b",null]}`, `"text"`, `[true,false]`, `17`, `{}`}
var integers = []int64{0, 1, -1, 7, 127, 128, 300, 65535, 2147483647, -2147483648, 1 << 40, -1 << 63, 1<<63 - 1, 1<<53 + 1}

func fill(value reflect.Value, random *rand.Rand, fullness int, depth int) {
	skip := func() bool { return random.Intn(100) >= fullness || depth > depthMax }
	switch special := value.Addr().Interface().(type) {
	case *metav1.Time:
		*special = metav1.Time{Time: time.Unix(random.Int63n(4e9)-1e9, 0).UTC()}
		return
	case *metav1.MicroTime:
		*special = metav1.MicroTime{Time: time.Unix(random.Int63n(4e9)-1e9, random.Int63n(1e6)*1000).UTC()}
		return
	case *resource.Quantity:
		*special = resource.MustParse(quantities[random.Intn(len(quantities))])
		return
	case *intstr.IntOrString:
		if *special = intstr.FromInt32(random.Int31() - 1<<30); random.Intn(2) == 0 {
			*special = intstr.FromString(texts[random.Intn(len(texts))])
		}
		return
	case *runtime.RawExtension:
		special.Raw = []byte(raws[random.Intn(len(raws))])
		return
	case *metav1.FieldsV1:
		special.SetRawBytes([]byte(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`))
		return
	case *apiextensions.JSON:
		special.Raw = []byte(raws[random.Intn(len(raws))])
		return
	case *apiextensions.JSONSchemaPropsOrBool:
		if special.Allows = random.Intn(2) == 0; special.Allows && !skip() {
			special.Schema = &apiextensions.JSONSchemaProps{}
			fill(reflect.ValueOf(special.Schema).Elem(), random, fullness/2, depth+1)
		}
		return
	case *apiextensions.JSONSchemaPropsOrArray:
		if special.Schema = (&apiextensions.JSONSchemaProps{Type: "x"}); random.Intn(2) == 0 {
			*special = apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{{}, {ID: "i"}}}
		}
		return
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if special.Schema = (&apiextensions.JSONSchemaProps{Type: "x"}); random.Intn(2) == 0 {
			*special = apiextensions.JSONSchemaPropsOrStringArray{Property: []string{"a", "b"}}
		}
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(texts[random.Intn(len(texts))])
	case reflect.Bool:
		value.SetBool(random.Intn(2) == 0)
	case reflect.Int32:
		value.SetInt(int64(int32(integers[random.Intn(len(integers))])))
	case reflect.Int64:
		value.SetInt(integers[random.Intn(len(integers))])
	case reflect.Float64:
		value.SetFloat([]float64{0, 1, -2.5, 1e21, 1e-7, 0.1, 123456789.125}[random.Intn(7)])
	case reflect.Pointer:
		if !skip() {
			value.Set(reflect.New(value.Type().Elem()))
			fill(value.Elem(), random, fullness, depth+1)
		}
	case reflect.Slice:
		if skip() {
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		for i := range value.Len() {
			if value.Type().Elem().Kind() == reflect.Uint8 {
				value.Index(i).SetUint(uint64(random.Intn(256)))
			} else {
				fill(value.Index(i), random, fullness, depth+1)
			}
		}
	case reflect.Map:
		if skip() {
			return
		}
		value.Set(reflect.MakeMap(value.Type()))
		for range 2 {
			key := reflect.New(value.Type().Key()).Elem()
			element := reflect.New(value.Type().Elem()).Elem()
			fill(key, random, fullness, depth+1)
			fill(element, random, fullness, depth+1)
			value.SetMapIndex(key, element)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.Tag.Get("protobuf") != "" && field.Name != "TypeMeta" {
				if field.Type.Kind() == reflect.Struct || !skip() {
					fill(value.Field(i), random, fullness, depth+1)
				}
			}
		}
	default:
		must(fmt.Errorf("%s cannot be filled", value.Type()))
	}
}
