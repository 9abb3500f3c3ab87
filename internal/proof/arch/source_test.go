package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// file is one Go file of the module.
type file struct {
	path string // from the module's root, with slashes
	text []byte
	tree *ast.File
	test bool
}

// pkg returns the folder of the file as the tables name it: without "internal/".
func (f file) pkg() string {
	return strings.TrimPrefix(filepath.ToSlash(filepath.Dir(f.path)), "internal/")
}

// imports lists the import paths of a file. Those of this module have the form of
// pkg.
func (f file) imports() (out []string) {
	for _, spec := range f.tree.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(path, "yardmaster/"); ok {
			path = "own:" + strings.TrimPrefix(own, "internal/")
		}
		out = append(out, path)
	}
	return out
}

// uses tells whether the file names one of the members of an imported package, such
// as Now of time.
func (f file) uses(path string, names ...string) bool {
	local := path[strings.LastIndex(path, "/")+1:]
	imported := false
	for _, spec := range f.tree.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == path {
			imported = true
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	found := false
	ast.Inspect(f.tree, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && imported && x.Name == local && slices.Contains(names, sel.Sel.Name) {
			found = true
		}
		return true
	})
	return found
}

var source = sync.OnceValues(func() ([]file, error) {
	var out []file
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || path != root && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return filepath.SkipDir // a module of its own: a tool, no part of the program
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		out = append(out, file{filepath.ToSlash(rel), text, tree, strings.HasSuffix(path, "_test.go")})
		return err
	})
	return out, err
})

func files(t *testing.T) []file {
	t.Helper()
	all, err := source()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d Go files were found: the walk is broken", len(all))
	}
	return all
}

// product returns the files that are not tests.
func product(t *testing.T) []file {
	return slices.DeleteFunc(slices.Clone(files(t)), func(f file) bool { return f.test })
}

func packages(all []file) []string {
	seen := map[string]bool{}
	for _, f := range all {
		seen[f.pkg()] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// exceptions compares the users of something with a table of allowed users and
// reasons. A line of the table that is no longer needed fails as well.
func exceptions(t *testing.T, what string, users map[string][]string, allowed map[string]string) {
	t.Helper()
	for _, user := range slices.Sorted(maps.Keys(users)) {
		if allowed[user] == "" {
			t.Errorf("%s %s (%s): only those in the table may", user, what, strings.Join(users[user], ", "))
		}
	}
	for user := range allowed {
		if users[user] == nil {
			t.Errorf("the table lets %s %s, which it does not: remove the line", user, what)
		}
	}
}

func lines(b []byte) int { return bytes.Count(b, []byte("\n")) }
