// Package parts runs parts of the dashboard in a real browser, on a page that has nothing
// else, and measures what the dashboard takes. A test holds the limits of these figures, and
// the measurements write them down.
package parts

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"

	"github.com/evanw/esbuild/pkg/api"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/npm"
)

// Open opens an empty page and runs a source in it, with the parts of the dashboard that it
// imports. The name of the source is relative to the working directory. The bundle is for this
// page only; it is no part of what the server serves.
func Open(t browser.T, source string) *browser.Tab {
	t.Helper()
	bundle, err := bundle(source)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>Parts</title><body><div id=app></div>"))
	}))
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL, 1440, 900)
	b.Go("/")
	browser.Eval[bool](b, bundle+"; true")
	return b
}

// root is the folder of the module that holds the working directory.
func root() (string, error) {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.Join(err, errors.New("no go.mod above the working directory"))
}

func bundle(source string) (string, error) {
	at, err := root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(at, "internal/web/packages.lock"))
	if err != nil {
		return "", err
	}
	packages, err := npm.Parse(text)
	if err != nil {
		return "", err
	}
	dir, err := npm.Cache("web", text)
	if err != nil {
		return "", err
	}
	modules := filepath.Join(dir, "node_modules")
	err = npm.Alone(dir, func() error {
		for _, p := range packages {
			if !slices.Contains([]string{"preact", "@preact/signals", "@preact/signals-core"}, p.Name) {
				continue
			}
			if err := p.Unpack(context.Background(), modules); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{source}, Bundle: true, Format: api.FormatIIFE, Target: api.ES2022, JSX: api.JSXAutomatic,
		JSXImportSource: "preact", NodePaths: []string{modules}, LogLevel: api.LogLevelSilent,
	})
	for _, m := range append(r.Errors, r.Warnings...) {
		return "", &complaint{m}
	}
	return string(r.OutputFiles[0].Contents), nil
}

// complaint is what the bundler says of a source.
type complaint struct{ api.Message }

func (c *complaint) Error() string {
	if at := c.Location; at != nil {
		return at.File + ": " + c.Text + ": " + at.LineText
	}
	return c.Text
}
