// The node's port: the paths that the API server asks a kubelet for, answered by the streaming code of the real one.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	// A stream on which nobody says anything is over after so long.
	streamIdle = 5 * time.Minute
	// All streams of one request are opened within this time.
	streamCreation = 30 * time.Second
)

func (n *node) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.logs)
	for _, pattern := range []string{"/exec/{namespace}/{pod}/{container}", "/exec/{namespace}/{pod}/{uid}/{container}"} {
		routes.HandleFunc(pattern, n.exec)
	}
	for _, pattern := range []string{"/attach/{namespace}/{pod}/{container}", "/attach/{namespace}/{pod}/{uid}/{container}"} {
		routes.HandleFunc(pattern, n.attach)
	}
	for _, pattern := range []string{"/portForward/{namespace}/{pod}", "/portForward/{namespace}/{pod}/{uid}"} {
		routes.HandleFunc(pattern, n.portForward)
	}
	return routes
}

func (n *node) asked(request *http.Request) *pod {
	return n.pod(request.PathValue("namespace"), request.PathValue("pod"))
}

func (n *node) logs(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	asked := logOptions{follow: query.Get("follow") == "true", timestamps: query.Get("timestamps") == "true", tail: -1}
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		asked.tail = tail
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	n.asked(request).log(request.PathValue("container")).copy(request.Context(), flushing{w}, asked)
}

func (n *node) exec(w http.ResponseWriter, request *http.Request) {
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, request, n.asked(request), "", request.PathValue("uid"), request.PathValue("container"),
		request.URL.Query()["command"], options, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (n *node) attach(w http.ResponseWriter, request *http.Request) {
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, request, n.asked(request), "", request.PathValue("uid"), request.PathValue("container"),
		options, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (n *node) portForward(w http.ResponseWriter, request *http.Request) {
	options, err := portforward.NewV4Options(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, request, n.asked(request), request.PathValue("pod"), request.PathValue("uid"),
		options, streamIdle, streamCreation, portforward.SupportedProtocols)
}

// PortForward: on every port of every pod there is an echo.
func (p *pod) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	_, err := io.Copy(stream, stream)
	return err
}

type flushing struct{ http.ResponseWriter }

func (f flushing) Write(bytes []byte) (int, error) {
	count, err := f.ResponseWriter.Write(bytes)
	f.ResponseWriter.(http.Flusher).Flush()
	return count, err
}
