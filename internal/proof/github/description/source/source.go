// Package source fetches the documents that GitHub publishes about its API: the
// OpenAPI descriptions and the GraphQL schema. They come from the npm packages of the
// lock file and are kept in the user's cache. Nothing of them is committed.
package source

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"yardmaster/internal/proof/npm"
)

//go:embed lock.json
var lockText []byte

// Dir is the folder in which documents are kept, and what is made of them.
func Dir() (string, error) { return npm.Cache("github", lockText) }

// File returns the path of a document, such as "api.github.com.json". It fetches the
// document's package if the cache lacks it. Several processes may ask at once.
func File(ctx context.Context, name string) (string, error) {
	packages, err := npm.Parse(lockText)
	if err != nil {
		return "", err
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	for _, p := range packages {
		if slices.ContainsFunc(p.Files, func(f string) bool { return path.Base(f) == name }) {
			at := filepath.Join(dir, p.Version, name)
			return at, fetch(ctx, p, dir, at)
		}
	}
	return "", fmt.Errorf("the lock file has no document %s", name)
}

// All fetches every document that the cache lacks.
func All(ctx context.Context) error {
	for _, name := range []string{"api.github.com.json", "ghes-3.19.json", "schema.graphql"} {
		if _, err := File(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// fetch unpacks the files of a package below dir, unless the file at is there.
func fetch(ctx context.Context, p npm.Package, dir, at string) error {
	if _, err := os.Stat(at); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return npm.Alone(dir, func() error {
		if _, err := os.Stat(at); err == nil {
			return nil // another process has fetched it meanwhile
		}
		return p.Each(ctx, func(name string, _ bool, text []byte) error {
			return npm.Write(filepath.Join(filepath.Dir(at), path.Base(name)), text)
		})
	})
}
