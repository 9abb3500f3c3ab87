//go:build !race

package dashboard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/npm"
)

// script bundles a source of testdata with the parts of the dashboard that it imports. The
// bundle is for one test; it is no part of what the server serves.
func script(t *testing.T, entry string) string {
	t.Helper()
	text, err := os.ReadFile("../../web/packages.lock")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := npm.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := npm.Cache("web")
	if err != nil {
		t.Fatal(err)
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
		t.Fatal(err)
	}
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Format: api.FormatIIFE, Target: api.ES2022, JSX: api.JSXAutomatic,
		JSXImportSource: "preact", NodePaths: []string{modules}, LogLevel: api.LogLevelSilent,
	})
	for _, m := range append(r.Errors, r.Warnings...) {
		t.Fatalf("%s: %+v", m.Text, m.Location)
	}
	return string(r.OutputFiles[0].Contents)
}

// blank opens a page with nothing but a style sheet of the dashboard, and runs a script in it.
func blank(t *testing.T, source string) *browser.Tab {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>Parts</title><body><div id=app></div>"))
	}))
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL, 1440, 900)
	b.Go("/")
	browser.Eval[bool](b, source+"; true")
	return b
}

// The parts that only calculate hold on random input: they throw at nothing, lose no text,
// and take no more than their time; a drawing has no overlaps, and markdown draws only what
// it may.
func TestPureParts(t *testing.T) {
	t.Parallel()
	b := blank(t, script(t, "testdata/parts/main.tsx"))
	for _, name := range []string{"ansi", "lcs", "patch", "dag", "markdown", "transcript", "sse"} {
		found := browser.Eval[struct {
			N     int
			Wrong []string
		}](b, "parts("+quoted(name)+", 1)")
		for _, w := range found.Wrong {
			t.Errorf("%s: %s", name, w)
		}
		if found.N < 100 {
			t.Errorf("%s was tried on %d inputs", name, found.N)
		}
		t.Logf("%s was tried on %d inputs", name, found.N)
	}
}
