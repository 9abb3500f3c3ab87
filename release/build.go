package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// built is the program for a target and what goes with it, in a folder that is deleted afterwards.
type built struct {
	folder, system, machine string
	program                 string // path
	bill, terms             []byte
	manual                  map[string][]byte // compressed pages, by name
}

// base begins the names of files for the target.
func (b built) base(r *release) string {
	return strings.Join([]string{"yardmaster", r.number(), b.system, b.machine}, "_")
}

// own are variables of a builder that would change what is built.
var own = []string{"GOFLAGS", "GOEXPERIMENT", "GODEBUG", "GOAMD64", "GOARM64", "GOOS", "GOARCH", "GOWORK", "GOENV", "CGO_ENABLED"}

func (r *release) build(target string) (b built, err error) {
	system, machine, ok := strings.Cut(target, "/")
	if !ok {
		return b, errors.New("a target is a system and a processor, as linux/amd64")
	}
	b = built{system: system, machine: machine}
	if b.folder, err = os.MkdirTemp("", "release-"); err != nil {
		return b, err
	}
	b.program = filepath.Join(b.folder, "yardmaster")
	if err := r.compile(b.program, system, machine); err != nil {
		return b, err
	}
	texts := filepath.Join(b.folder, "LICENSES.txt")
	if b.bill, err = r.goes("run", "./internal/proof/sbom", "-licences", texts, b.program); err != nil {
		return b, err
	}
	if b.terms, err = os.ReadFile(texts); err != nil {
		return b, err
	}
	pages, err := os.ReadFile(filepath.Join(r.source, "internal/web/dist/LICENSES.txt"))
	if err != nil {
		return b, err
	}
	b.terms = append(b.terms, "The pages of the dashboard\n\n"+string(pages)...)
	b.manual, err = r.manual(b)
	return b, err
}

// compile builds the program. No path, time, state of a checkout or flag of the builder goes in.
func (r *release) compile(into, system, machine string) error {
	_, err := r.goes("build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", "-s -w -buildid= -X main.version="+r.version+" -X main.revision="+r.commit, "-o", into, "./cmd/yardmaster",
		"GOOS="+system, "GOARCH="+machine)
	return err
}

// goes runs the go command in the checkout. Arguments at the end that are in capitals are variables.
func (r *release) goes(args ...string) ([]byte, error) {
	cmd := exec.Command("go")
	cmd.Dir, cmd.Stderr = r.source, os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(own, name)
	})
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off", "GOFLAGS=-trimpath")
	for _, a := range args {
		if strings.HasPrefix(a, "GO") {
			cmd.Env = append(cmd.Env, a)
		} else {
			cmd.Args = append(cmd.Args, a)
		}
	}
	return cmd.Output()
}

// manual has the program write its pages, which are the same for each target: on another machine
// than it is for, one for this machine.
func (r *release) manual(b built) (map[string][]byte, error) {
	if r.pages != nil {
		return r.pages, nil
	}
	program := b.program
	if b.system != runtime.GOOS || b.machine != runtime.GOARCH {
		program = filepath.Join(b.folder, "here")
		if err := r.compile(program, runtime.GOOS, runtime.GOARCH); err != nil {
			return nil, err
		}
	}
	folder := filepath.Join(b.folder, "man1")
	cmd := exec.Command(program, "man", folder)
	cmd.Env = append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", r.at.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the manual: %w: %s", err, out)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	for _, f := range files {
		page, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return nil, err
		}
		if pages[f.Name()+".gz"], err = zipped(page); err != nil {
			return nil, err
		}
	}
	r.pages = pages
	return pages, nil
}

// zipped compresses without a name and a time.
func zipped(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(plain)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}
