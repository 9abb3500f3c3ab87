package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive, or a folder if its name ends with a slash.
type entry struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// archive makes the tar.gz of a target: one folder, with the signature by which the program itself
// can be put into the ledger of what boxes run.
func (r *release) archive(b built) error {
	program, err := os.ReadFile(b.program)
	if err != nil {
		return err
	}
	base := b.base(r)
	var entries []entry
	add := func(name string, mode int64, content []byte) {
		entries = append(entries, entry{name: base + "/" + name, mode: mode, content: content})
	}
	add("yardmaster", 0o755, program)
	add("LICENSES.txt", 0o644, b.terms)
	add("yardmaster.cdx.json", 0o644, b.bill)
	taken := []string{"LICENSE", "README.md"}
	if b.system == "linux" {
		for _, name := range []string{"yardmaster.service", "yardmaster-box.service", "yardmaster.sysusers", "yardmaster.yaml.example"} {
			taken = append(taken, "release/files/"+name)
		}
	}
	for _, name := range taken {
		text, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return err
		}
		add(filepath.Base(name), 0o644, text)
	}
	for _, name := range slices.Sorted(maps.Keys(b.manual)) {
		add("man/man1/"+name, 0o644, b.manual[name])
	}
	if r.key != nil {
		text, err := r.key.program(program, r.version, b.system+"/"+b.machine)
		if err != nil {
			return err
		}
		add("yardmaster.minisig", 0o644, text)
	}
	plain, err := packed(entries, r.at)
	if err != nil {
		return err
	}
	whole, err := zipped(plain)
	if err != nil {
		return err
	}
	return errors.Join(r.put(base+".tar.gz", whole), r.put(base+".cdx.json", b.bill))
}

// files is the folder of what is packed beside the program.
func (r *release) files() string { return filepath.Join(r.source, "release/files") }

// packed makes a tar whose bytes depend on no machine.
func packed(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)),
			ModTime: at, Format: tar.FormatUSTAR}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
