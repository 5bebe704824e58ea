// tar as far as kubectl cp needs it: `tar cf - PATH` and `tar -xmf - -C FOLDER`, over the pod's own files.
package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
)

// One file of a copy: beyond what any proof copies.
const fileBytesMax = 64 << 20

func (p *pod) tar(words []string, s streams) int {
	folder, name, extract, create := "/", "", false, false
	for index := 0; index < len(words); index++ {
		switch word := words[index]; {
		case word == "-C" && index+1 < len(words):
			index++
			folder = words[index]
		case word == "-":
		case index == 0 || strings.HasPrefix(word, "-"):
			extract = extract || strings.Contains(word, "x")
			create = create || (!strings.HasPrefix(word, "--") && strings.Contains(word, "c"))
		default:
			name = word
		}
	}
	var err error
	switch {
	case extract:
		err = p.unpack(folder, s.in)
	case create:
		err = p.pack(name, s.out)
	default:
		err = errors.New("tar: only x and c")
	}
	if err != nil {
		return fail(s, 2, err)
	}
	return 0
}

func (p *pod) unpack(folder string, in io.Reader) error {
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			// kubectl pads the archive; what is left unread would look like a broken pipe to it.
			_, err = io.Copy(io.Discard, in)
			return err
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(archive, fileBytesMax))
		if err != nil {
			return err
		}
		p.mutex.Lock()
		p.files[path.Join("/", folder, header.Name)] = content
		p.mutex.Unlock()
	}
}

func (p *pod) pack(name string, out io.Writer) error {
	root := path.Join("/", name)
	p.mutex.Lock()
	found := map[string][]byte{}
	for at, content := range p.files {
		if at == root || strings.HasPrefix(at, root+"/") {
			found[at] = content
		}
	}
	p.mutex.Unlock()
	if len(found) == 0 {
		return fmt.Errorf("tar: %s: Cannot stat: No such file or directory", name)
	}
	names := make([]string, 0, len(found))
	for at := range found {
		names = append(names, at)
	}
	sort.Strings(names)
	archive := tar.NewWriter(out)
	for _, at := range names {
		header := &tar.Header{Name: strings.TrimPrefix(at, "/"), Mode: 0o644, Size: int64(len(found[at])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(found[at]); err != nil {
			return err
		}
	}
	return archive.Close()
}
