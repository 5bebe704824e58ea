// Judges messages: what the decoder of kube-apiserver makes of one, as JSON, and how it writes an object in protobuf. It
// reads requests from standard input, each a length of four bytes and so many bytes, the first of which tells what is
// wanted, and answers in the same form, the first byte telling whether it went well.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	discoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	toJSON     = 'j'
	toProtobuf = 'p'
	well       = 'o'
	fault      = 'f'
)

type judge struct {
	json     runtime.Serializer
	protobuf runtime.Serializer
}

func main() {
	utilruntime.Must(apiextensions.AddToScheme(scheme.Scheme))
	utilruntime.Must(apiregistration.AddToScheme(scheme.Scheme))
	utilruntime.Must(discoveryv2.AddToScheme(scheme.Scheme))
	utilruntime.Must(discoveryv2beta1.AddToScheme(scheme.Scheme))
	utilruntime.Must(metav1.AddMetaToScheme(scheme.Scheme))
	one := &judge{
		json:     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}),
		protobuf: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		request, err := read(in)
		if err != nil {
			if err == io.EOF {
				return
			}
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer, err := one.answer(request)
		if err != nil {
			write(out, fault, []byte(err.Error()))
		} else {
			write(out, well, answer)
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}

func (j *judge) answer(request []byte) (answer []byte, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("panic: %v", why)
		}
	}()
	if len(request) == 0 {
		return nil, fmt.Errorf("nothing is asked")
	}
	from, to := j.protobuf, j.json
	if request[0] == toProtobuf {
		from, to = j.json, j.protobuf
	}
	object, kind, err := from.Decode(request[1:], &schema.GroupVersionKind{}, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	var written bytes.Buffer
	if err := to.Encode(object, &written); err != nil {
		return nil, err
	}
	return written.Bytes(), nil
}

func read(in io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	request := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(in, request)
	return request, err
}

func write(out io.Writer, verdict byte, content []byte) {
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(content)+1))
	for _, part := range [][]byte{length[:], {verdict}, content} {
		if _, err := out.Write(part); err != nil {
			os.Exit(1)
		}
	}
}
