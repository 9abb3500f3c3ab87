// Bundle builds the dashboard: it writes the typed client from docs/openapi.json, has
// Biome lay the sources out and the TypeScript compiler check the types, and bundles
// internal/web/src into internal/web/dist with esbuild. No Node runs. Run it at the root of the module.
//
//	go run ./internal/proof/bundle          write what is generated
//	go run ./internal/proof/bundle -check   fail if what is committed differs
//	go run ./internal/proof/bundle -dev 127.0.0.1:8081 -server http://127.0.0.1:8080
//	                                        serve the sources, built for each page, before a server
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const (
	document = "docs/openapi.json"
	web      = "internal/web"
	source   = web + "/src"
	dist     = web + "/dist"
	client   = source + "/client.gen.ts"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if what is committed differs")
	dev := flag.String("dev", "", "serve the sources at this loopback address, built for each page that is asked for")
	format := flag.Bool("format", false, "lay the sources out, judge them, and do nothing else")
	server := flag.String("server", "http://127.0.0.1:8080", "with -dev: the server that answers all else")
	flag.Parse()
	work := func() error { return run(context.Background(), *check) }
	switch {
	case *format:
		work = func() error { return laidOut(context.Background()) }
	case *dev != "":
		work = func() error { return develop(context.Background(), *dev, *server) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// laidOut lays the sources out, and fails if Biome finds something else in them.
func laidOut(ctx context.Context) error {
	tools, err := fetch(ctx)
	if err != nil {
		return err
	}
	return tools.layout(ctx, false)
}

func run(ctx context.Context, check bool) error {
	doc, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	text, err := generate(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	if err := put(map[string][]byte{filepath.Base(client): text}, source, check, false); err != nil {
		return err
	}
	tools, err := fetch(ctx)
	if err != nil {
		return err
	}
	if err := tools.layout(ctx, check); err != nil {
		return err
	}
	if err := tools.types(ctx); err != nil {
		return err
	}
	made, first, err := tools.bundle()
	if err != nil {
		return err
	}
	if err := budgets(made, first); err != nil {
		return err
	}
	return put(made, dist, check, true)
}

// put writes files into a folder, or with check compares them. With whole the folder
// holds nothing else.
func put(files map[string][]byte, dir string, check, whole bool) error {
	if whole {
		old, err := filepath.Glob(dir + "/*")
		if err != nil {
			return err
		}
		for _, at := range old {
			if _, ok := files[filepath.Base(at)]; ok {
				continue
			}
			if check {
				return fmt.Errorf("%s is not what its sources say: run make web", at)
			}
			if err := os.Remove(at); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		had, err := os.ReadFile(at)
		if err == nil && string(had) == string(text) {
			continue
		}
		if check {
			return fmt.Errorf("%s is not what its sources say: run make web", at)
		}
		if err := os.WriteFile(at, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
