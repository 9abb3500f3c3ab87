// Release makes the files of a release from a clean checkout: for each target an archive with the
// program, its manual pages, the terms of everything in it and a bill of materials, a deb and an
// rpm, and the documents; then SHA256SUMS, and a signature of each file in minisign's form. The same commit, version,
// key and Go make the same bytes.
//
//	go run . -source .. -into ../dist -version v1.2.3 -key SECRET-KEY
//
// The password of the key is read from MINISIGN_PASSWORD: flags are shown by ps. It is a module of
// its own, so that what makes packages stays out of the list of modules of the program.
//
//   - main.go: the order of things
//   - checkout.go: what is released, and whether it may be
//   - build.go: the program for a target, and what goes with it
//   - archive.go, packages.go, image.go, chart.go, docs.go: what is handed out
//   - sign.go: sums and signatures
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type release struct {
	checkout
	into string
	key  *signer  // nil: nothing is signed
	made []string // names of files in into

	pages map[string][]byte // of the manual, compressed, by name; nil: not written yet
}

func main() {
	var r release
	flag.StringVar(&r.source, "source", "..", "checkout of the product")
	flag.StringVar(&r.into, "into", "../dist", "empty folder of the release")
	flag.StringVar(&r.version, "version", "", "as v1.2.3; empty: that of the tag of the commit")
	flag.StringVar(&r.commit, "commit", "", "with -dirty: instead of asking git")
	flag.BoolVar(&r.dirty, "dirty", false, "for tests: takes a checkout with changes, and says so in the version")
	unsigned := flag.Bool("unsigned", false, "for tests: signs nothing")
	key := flag.String("key", "", "secret key of minisign")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "systems and processors, with commas between")
	bases := flag.String("bases", "", "folder with server-ARCH.tar and box-ARCH.tar, of which images are made; empty: no images")
	flag.Parse()
	if err := r.run(*key, *unsigned, *bases, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(key string, unsigned bool, bases string, targets []string) (err error) {
	if err := r.identify(); err != nil {
		return err
	}
	switch {
	case key != "":
		if r.key, err = openKey(key); err != nil {
			return err
		}
	case !unsigned:
		return errors.New("a release is signed: name the secret key (KEY=FILE), or say that this is a trial (-unsigned)")
	}
	if err := os.MkdirAll(r.into, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(r.into); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: what lies there would pass for a part of the release", r.into))
	}
	if err := below(bases, targets); err != nil {
		return err
	}
	for _, target := range targets {
		began := time.Now()
		if err := r.target(target, bases); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		fmt.Printf("%s in %.1f s\n", target, time.Since(began).Seconds())
	}
	if err := errors.Join(r.chart(), r.docs(), r.installer()); err != nil {
		return err
	}
	if err := r.same(); err != nil {
		return err
	}
	return r.seal()
}

// target makes what is handed out for one system and processor.
func (r *release) target(target, bases string) error {
	b, err := r.build(target)
	defer os.RemoveAll(b.folder)
	if err != nil {
		return err
	}
	if err := r.archive(b); err != nil {
		return err
	}
	if b.system != "linux" {
		return nil
	}
	if err := r.packages(b); err != nil {
		return err
	}
	if bases == "" {
		return nil
	}
	for _, kind := range kinds {
		if err := r.image(b, kind, baseOf(bases, kind, b.machine)); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file of the release.
func (r *release) put(name string, content []byte) error {
	r.made = append(r.made, name)
	slices.Sort(r.made)
	return os.WriteFile(filepath.Join(r.into, name), content, 0o644)
}

// number is the version without its v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }
