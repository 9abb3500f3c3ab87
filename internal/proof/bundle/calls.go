package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

const clientFile = "client.gen.ts"

var (
	imports  = regexp.MustCompile(`import \{([^}]*)\} from "([./]+)client\.gen";`)
	exported = regexp.MustCompile(`(?m)^export (const (\w+) = /\* @__PURE__ \*/ )(op|tail)(<.*;)$`)
)

// calls moves a call of the client that one source alone makes into that source. Otherwise
// each page would load the calls of all pages: a bundler keeps a file whole.
func calls() api.Plugin {
	return api.Plugin{Name: "calls", Setup: func(b api.PluginBuild) {
		var moved map[string]string // the declarations of calls that move, by their names
		b.OnStart(func() (r api.OnStartResult, err error) {
			moved, err = alone(source)
			return r, err
		})
		b.OnLoad(api.OnLoadOptions{Filter: `/` + source + `/.*\.tsx?$`}, func(a api.OnLoadArgs) (r api.OnLoadResult, err error) {
			text, err := os.ReadFile(a.Path)
			out := withCalls(string(text), moved)
			r.Contents, r.Loader = &out, api.LoaderTS
			if strings.HasSuffix(a.Path, "x") {
				r.Loader = api.LoaderTSX
			}
			return r, err
		})
	}}
}

// alone returns the declarations of the calls that one source of a folder imports, by their
// names.
func alone(dir string) (map[string]string, error) {
	users, declared := map[string]int{}, map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if !strings.HasPrefix(filepath.Ext(path), ".ts") || err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			for _, name := range names(m[1]) {
				users[name]++
			}
		}
		if filepath.Base(path) == clientFile {
			for _, m := range exported.FindAllStringSubmatch(string(text), -1) {
				declared[m[2]] = m[1] + m[3] + "_" + m[4]
			}
		}
		return err
	})
	if len(declared) == 0 {
		err = errors.Join(err, fmt.Errorf("%s declares no calls", clientFile))
	}
	for name := range declared {
		if users[name] != 1 {
			delete(declared, name)
		}
	}
	return declared, err
}

// withCalls is a source with the declarations of the calls that it alone makes, on the line
// of their import. The client keeps those that nobody imports from it; they fall away.
func withCalls(text string, moved map[string]string) string {
	return imports.ReplaceAllStringFunc(text, func(found string) string {
		m := imports.FindStringSubmatch(found)
		kept, own := []string{}, []string{}
		for _, name := range names(m[1]) {
			if d, ok := moved[name]; ok {
				own = append(own, d)
			} else {
				kept = append(kept, name)
			}
		}
		if len(own) == 0 {
			return found
		}
		slices.Sort(own)
		return fmt.Sprintf(`import { %s } from %q; import { op as op_, tail as tail_ } from %q; %s`,
			strings.Join(kept, ", "), m[2]+"client.gen", m[2]+"api", strings.Join(own, " "))
	})
}

// names are those of an import.
func names(list string) (out []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}
