// A stand-in for a kubelet: a Node whose port answers logs, exec, attach and port-forward with the streaming code of the
// real one, and whose containers are a few commands inside this program. It runs nothing on the machine.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Longer than any run.
const certificateLife = 365 * 24 * time.Hour

func main() {
	path := flag.String("kubeconfig", "", "how to reach the API server")
	name := flag.String("node", "stand-in", "the name of the node")
	authority := flag.String("client-ca", "", "the CA of those who may come in: the API server's client certificate")
	port := flag.Int("port", 0, "the port of the node; 0 picks one")
	flag.Parse()
	if err := run(*path, *name, *authority, *port); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path, name, authority string, port int) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	secured, err := secure(authority)
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port), secured)
	if err != nil {
		return err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	node := &node{name: name, port: int32(port), client: client, pods: map[string]*pod{}}
	ctx, cancel := context.WithCancel(context.Background())
	if err := node.register(ctx); err != nil {
		cancel()
		return err
	}
	go node.keepRunning(ctx)
	// The end of standard input is the end of whoever started this.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		_ = listener.Close()
	}()
	fmt.Printf("ready %d\n", port)
	// Upgrades need HTTP/1.1, which is all that a listener without ALPN speaks.
	err = (&http.Server{Handler: node.routes(), ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// secure is a certificate of its own, and the demand for one of the given CA: a port that runs commands is no open one.
func secure(authority string) (*tls.Config, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	callers := x509.NewCertPool()
	if !callers.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", authority)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "stand-in"},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: callers, MinVersion: tls.VersionTLS12,
	}, nil
}
