// The commands that a container knows. They see nothing of the machine but their streams and the pod's own files.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"
)

type streams struct {
	in       io.Reader
	out, err io.Writer
	resize   <-chan remotecommand.TerminalSize
}

// ExecInContainer runs one command; its exit code is an error unless it is 0.
func (p *pod) ExecInContainer(ctx context.Context, _, _, container string, words []string, in io.Reader, out, err io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	given := streams{in: in, out: out, err: err, resize: resize}
	if in == nil {
		given.in = strings.NewReader("")
	}
	if out == nil {
		given.out = io.Discard
	}
	if err == nil {
		given.err = given.out
	}
	if code := p.execute(ctx, container, words, given); code != 0 {
		return exec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
	}
	return nil
}

// AttachContainer shows the log from now on; what is typed becomes a part of it.
func (p *pod) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, _ io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := p.log(container)
	if in == nil {
		log.copy(ctx, out, logOptions{follow: true})
		return nil
	}
	shown := make(chan struct{})
	if out != nil {
		go func() {
			defer close(shown)
			log.copy(ctx, out, logOptions{follow: true})
		}()
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		log.append("heard " + lines.Text())
	}
	// What was typed last is shown before the end.
	time.Sleep(lookAgain)
	cancel()
	if out != nil {
		<-shown
	}
	return nil
}

func (p *pod) execute(ctx context.Context, container string, words []string, s streams) int {
	if len(words) == 0 {
		return fail(s, 126, errors.New("no command"))
	}
	command, rest := words[0], words[1:]
	switch command {
	case "echo":
		fmt.Fprintln(s.out, strings.Join(rest, " "))
	case "log":
		p.log(container).append(strings.Join(rest, " "))
	case "complain":
		fmt.Fprintln(s.err, strings.Join(rest, " "))
	case "cat":
		return p.cat(rest, s)
	case "exit":
		code, err := strconv.Atoi(strings.Join(rest, ""))
		if err != nil {
			return fail(s, 2, err)
		}
		return code
	case "sleep":
		seconds, err := time.ParseDuration(strings.Join(rest, "") + "s")
		if err != nil {
			return fail(s, 2, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(seconds):
		}
	case "size":
		if s.resize == nil {
			return fail(s, 1, errors.New("no terminal"))
		}
		size := <-s.resize
		fmt.Fprintf(s.out, "%d %d\r\n", size.Height, size.Width)
	case "sh":
		if len(rest) != 2 || rest[0] != "-c" {
			return fail(s, 2, errors.New("usage: sh -c 'COMMAND; COMMAND'"))
		}
		code := 0
		for part := range strings.SplitSeq(rest[1], ";") {
			if inner := strings.Fields(part); len(inner) > 0 {
				code = p.execute(ctx, container, inner, s)
			}
		}
		return code
	case "tar":
		return p.tar(rest, s)
	default:
		return fail(s, 127, fmt.Errorf("%s: not found", command))
	}
	return 0
}

func (p *pod) cat(names []string, s streams) int {
	if len(names) == 0 {
		if _, err := io.Copy(s.out, s.in); err != nil {
			return fail(s, 1, err)
		}
		return 0
	}
	for _, name := range names {
		p.mutex.Lock()
		content, ok := p.files[name]
		p.mutex.Unlock()
		if !ok {
			return fail(s, 1, fmt.Errorf("%s: no such file", name))
		}
		_, _ = io.Copy(s.out, bytes.NewReader(content))
	}
	return 0
}

func fail(s streams, code int, err error) int {
	fmt.Fprintln(s.err, err)
	return code
}
