package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const maxProgram = 1 << 30 // bytes

// Programs takes the programs out of the archives of a release in a folder, each with the signature
// by which boxes take it beside it, and answers their paths: FOLDER/ARCHIVE/yardmaster.
func (r Release) Programs(folder string) (out []string, err error) {
	for _, name := range r.archives() {
		base := strings.TrimSuffix(name, ".tar.gz")
		into := filepath.Join(folder, base)
		if err := os.Mkdir(into, 0o755); err != nil {
			return nil, err
		}
		if err := program(filepath.Join(folder, name), base, into); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, filepath.Join(into, "yardmaster"))
	}
	return out, nil
}

// program takes the program and its signature out of an archive.
func program(path, base, into string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	want := map[string]string{base + "/yardmaster": "yardmaster", base + "/yardmaster.minisig": "yardmaster.minisig"}
	for in := tar.NewReader(unzipped); len(want) > 0; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("it has no signed program")
		}
		if err != nil {
			return err
		}
		name, ok := want[h.Name]
		if !ok {
			continue
		}
		delete(want, h.Name)
		text, err := io.ReadAll(io.LimitReader(in, maxProgram))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, name), text, 0o755); err != nil {
			return err
		}
	}
	return nil
}
