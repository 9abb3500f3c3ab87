package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"yardmaster/internal/proof/npm"
)

// The budgets, in bytes as they go over the wire with gzip.
const (
	firstLoad = 60_000
	anyChunk  = 45_000
	anyStyle  = 12_000
)

// libraries are the packages of which a part is in the bundle.
var libraries = []string{"preact", "@preact/signals", "@preact/signals-core"}

// vendor is the source of the chunk that holds the libraries and nothing of ours.
const vendor = `export * from "preact"; export * from "preact/hooks"; export { jsx, jsxs } from "preact/jsx-runtime"; export * from "@preact/signals";`

// provided are the imports that the chunk of the libraries answers.
var provided = []string{"preact", "preact/hooks", "preact/jsx-runtime", "@preact/signals"}

// kit is the folder of the cache with the unpacked packages.
type kit struct {
	modules   string // node_modules
	compiler  string // the TypeScript compiler
	formatter string // Biome
	licences  []byte
}

// fetch unpacks what the cache lacks.
func fetch(ctx context.Context) (kit, error) {
	text, err := os.ReadFile(web + "/packages.lock")
	if err != nil {
		return kit{}, err
	}
	packages, err := npm.Parse(text)
	if err != nil {
		return kit{}, err
	}
	dir, err := npm.Cache("web", text)
	if err != nil {
		return kit{}, err
	}
	k := kit{modules: filepath.Join(dir, "node_modules")}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	machine := runtime.GOOS + "-" + arch
	err = npm.Alone(dir, func() error {
		for _, p := range packages {
			switch at := filepath.Join(k.modules, p.Name); {
			case p.Name == "@typescript/typescript-"+machine:
				k.compiler = filepath.Join(at, "lib", "tsc")
			case p.Name == "@biomejs/cli-"+machine:
				k.formatter = filepath.Join(at, "biome")
			case !slices.Contains(libraries, p.Name):
				continue
			}
			if err := p.Unpack(ctx, k.modules); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return k, err
	}
	if k.compiler == "" || k.formatter == "" {
		return k, fmt.Errorf("packages.lock has no TypeScript compiler, or no Biome, for %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	for _, name := range libraries {
		licence, err := os.ReadFile(filepath.Join(k.modules, name, "LICENSE"))
		if err != nil {
			return k, err
		}
		k.licences = fmt.Appendf(k.licences, "%s\n\n%s\n\n", name, bytes.TrimSpace(licence))
	}
	more, err := os.ReadFile(web + "/licences.txt") // of what is in the sources: icons, the font
	k.licences = append(k.licences, more...)
	return k, err
}

// layout has Biome lay the sources out and judge them as biome.json says, or with check
// refuse what is laid out otherwise.
func (k kit) layout(ctx context.Context, check bool) error {
	cmd := exec.CommandContext(ctx, k.formatter, "check", "--colors=off", "--error-on-warnings")
	if !check {
		cmd.Args = append(cmd.Args, "--write")
	}
	cmd.Dir = web // the folder of biome.json
	out, err := cmd.CombinedOutput()
	if err != nil && check {
		return fmt.Errorf("sources of the dashboard are not as biome.json says: run make web-format\n%s", out)
	}
	if err != nil {
		return fmt.Errorf("Biome refuses sources of the dashboard: %w\n%s", err, out)
	}
	return nil
}

// types has the compiler check the types.
func (k kit) types(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	paths := map[string][]string{}
	for _, name := range append(slices.Clone(provided), "@preact/signals-core") {
		paths[name] = []string{filepath.Join(k.modules, name)}
	}
	project, err := json.Marshal(map[string]any{
		"extends":         filepath.Join(root, source, "tsconfig.json"),
		"compilerOptions": map[string]any{"paths": paths, "noEmit": true},
		"include":         []string{filepath.Join(root, source)},
	})
	if err != nil {
		return err
	}
	at := filepath.Join(filepath.Dir(k.modules), "tsconfig.json")
	if err := npm.Write(at, project); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, k.compiler, "-p", at).CombinedOutput(); err != nil {
		return fmt.Errorf("the types do not fit:\n%s", out)
	}
	return nil
}

// bundle returns the files of the folder dist.
func (k kit) bundle() (made map[string][]byte, first []string, err error) {
	common := api.BuildOptions{
		Bundle: true, Outdir: "out", Format: api.FormatESModule, Target: api.ES2022, Metafile: true,
		EntryNames: "[name]-[hash]", ChunkNames: "[name]-[hash]", MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true,
		External: []string{"/ui/a/*"}, // the font, which the pages without script load as well
		JSX:      api.JSXAutomatic, JSXImportSource: "preact", NodePaths: []string{k.modules}, LegalComments: api.LegalCommentsNone,
	}
	// The libraries are named as from their own folder: the names decide about the bytes,
	// and the cache may be anywhere.
	at, err := filepath.EvalSymlinks(filepath.Dir(k.modules))
	if err != nil {
		return nil, nil, err
	}
	libs := common
	libs.AbsWorkingDir = at
	libs.Stdin = &api.StdinOptions{Contents: vendor, ResolveDir: at, Sourcefile: "vendor.js"}
	libs.EntryNames = "vendor-[hash]"
	shared, err := built(api.Build(libs))
	if err != nil {
		return nil, nil, err
	}
	var name string
	for n := range shared {
		name = n
	}
	ours := common
	ours.EntryPoints, ours.Splitting = []string{source + "/app.tsx", source + "/app.css", source + "/more.css"}, true
	ours.Plugins = []api.Plugin{calls(), {Name: "vendor", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: "^[^./]"}, func(a api.OnResolveArgs) (r api.OnResolveResult, err error) {
			if slices.Contains(provided, a.Path) {
				return api.OnResolveResult{Path: "./" + name, External: true}, nil
			}
			return r, nil
		})
	}}}
	result := api.Build(ours)
	if made, err = built(result); err != nil {
		return nil, nil, err
	}
	if first, err = together(result.Metafile, source+"/app.tsx", source+"/app.css", source+"/pages/home.tsx"); err != nil {
		return nil, nil, err
	}
	first = append(first, name)
	made[name], made["LICENSES.txt"] = shared[name], k.licences
	manifest := map[string]string{"vendor": name}
	for n := range made {
		switch {
		case strings.HasPrefix(n, "app-"):
			manifest[strings.TrimPrefix(path.Ext(n), ".")] = n
		case strings.HasPrefix(n, "more-"):
			manifest["more"] = n
		}
	}
	slices.Sort(first)
	manifest["first"] = strings.Join(first, " ")
	text, err := json.MarshalIndent(manifest, "", "  ")
	made["manifest.json"] = append(text, '\n')
	return made, first, err
}

// together returns the names of the files that some sources are in, with those that
// they import.
func together(metafile string, sources ...string) ([]string, error) {
	var meta struct {
		Outputs map[string]struct {
			EntryPoint string
			Imports    []struct{ Path, Kind string }
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if _, ours := meta.Outputs[name]; !ours || seen[name] {
			return
		}
		seen[name] = true
		for _, i := range meta.Outputs[name].Imports {
			if i.Kind == "import-statement" {
				follow(i.Path)
			}
		}
	}
	for name, o := range meta.Outputs {
		if slices.Contains(sources, o.EntryPoint) {
			follow(name)
		}
	}
	if len(seen) < len(sources) {
		return nil, fmt.Errorf("of %q only %d files were made", sources, len(seen))
	}
	var out []string
	for name := range seen {
		out = append(out, path.Base(name))
	}
	return out, nil
}

// built returns the files of a build by their names.
func built(r api.BuildResult) (map[string][]byte, error) {
	var errs []error
	for _, m := range append(r.Errors, r.Warnings...) {
		at := ""
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		errs = append(errs, errors.New(at+m.Text))
	}
	out := map[string][]byte{}
	for _, f := range r.OutputFiles {
		out[filepath.Base(f.Path)] = f.Contents
	}
	return out, errors.Join(errs...)
}

// budgets returns an error if a page would load more than it may, and prints what
// the files weigh. first are those of the first load.
func budgets(made map[string][]byte, first []string) error {
	load := 0
	var errs []error
	for name, text := range made {
		ext := path.Ext(name)
		if ext != ".js" && ext != ".css" {
			continue
		}
		n, err := weight(text)
		if err != nil {
			return err
		}
		fmt.Printf("%-32s %7d bytes, %6d over the wire\n", name, len(text), n)
		if slices.Contains(first, name) {
			load += n
		}
		if limit := map[string]int{".js": anyChunk, ".css": anyStyle}[ext]; n > limit {
			errs = append(errs, fmt.Errorf("%s has %d bytes over the wire, %d are allowed", name, n, limit))
		}
	}
	fmt.Printf("the first load: %d bytes over the wire\n", load)
	if load > firstLoad {
		errs = append(errs, fmt.Errorf("the first load is %d bytes over the wire, %d are allowed", load, firstLoad))
	}
	return errors.Join(errs...)
}

func weight(text []byte) (int, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	_, err = z.Write(text)
	err = errors.Join(err, z.Close())
	return b.Len(), err
}
