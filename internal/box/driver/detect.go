package driver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/lazy"
	"yardmaster/internal/version"
)

// PathVariable is the environment variable with directories that are searched for
// agents before PATH.
const PathVariable = "YARDMASTER_AGENT_PATH"

const versionLimit = 10 * time.Second

// Found is an agent installed on this machine.
type Found struct {
	Name     string
	Version  string   // "" if the agent does not tell
	Path     string   // of the program, links resolved; "" for our own binary
	Argv     []string // command that starts it, without the profile's arguments
	PathDirs []string // directories its PATH needs besides the system's
	ReadOnly []string // files and directories that a sandbox must show besides the system's

	stamp string // changes with the program
}

// Lack is an agent that is installed and cannot be driven yet.
type Lack struct {
	Agent   string
	Has     string // path of the program that was found
	Former  bool   // the program is an adapter that is not driven any more
	Package string // npm package that is missing
}

// String says what is missing and which command fetches it.
func (l Lack) String() string {
	what := "is here without the adapter that drives it, "
	if l.Former {
		what = "is an adapter that is not driven any more; its successor is "
	}
	return l.Has + " " + what + l.Package + ": `yardmaster box agents install " + l.Agent + "` fetches that"
}

// Scan is the result of a search on this machine, in the order of Profiles, our own
// agent first.
type Scan struct {
	Found   []Found
	Lacking []Lack
}

// Same tells whether two searches found the same programs.
func (s Scan) Same(o Scan) bool {
	return slices.Equal(s.Lacking, o.Lacking) && slices.EqualFunc(s.Found, o.Found, func(a, b Found) bool {
		return a.Name == b.Name && a.stamp == b.stamp && slices.Equal(a.Argv, b.Argv)
	})
}

// Detect finds the agents in the directories of PathVariable, in those of more, and
// in PATH, in this order. It reads a version from the npm package that contains the
// program, or asks the program itself for at most ten seconds.
func Detect(ctx context.Context, more ...string) Scan {
	s := Search(more...)
	s.AskVersions(ctx)
	return s
}

// Search is Detect without starting programs: versions that only the agent itself
// could tell are empty. It costs no more than looking up files.
func Search(more ...string) (s Scan) {
	dirs := slices.Concat(filepath.SplitList(os.Getenv(PathVariable)), more, filepath.SplitList(os.Getenv("PATH")))
	for _, p := range Profiles() {
		if p.Bin == "" {
			s.Found = append(s.Found, Found{Name: p.Name, Version: version.Own})
		} else if f, ok := locate(p, dirs); ok {
			s.Found = append(s.Found, f)
		} else if has, ok := lookup(p.Plain, dirs); ok {
			s.Lacking = append(s.Lacking, Lack{Agent: p.Name, Has: has, Package: p.Package})
		} else if has, ok := lookup(p.Former, dirs); ok {
			s.Lacking = append(s.Lacking, Lack{Agent: p.Name, Has: has, Former: true, Package: p.Package})
		}
	}
	return s
}

// AskVersions asks the programs for the versions that Search could not read.
func (s *Scan) AskVersions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	var asked sync.WaitGroup
	for i := range s.Found {
		if f := &s.Found[i]; f.Version == "" && f.Path != "" {
			asked.Go(func() { f.Version = askVersion(ctx, f.Argv) })
		}
	}
	asked.Wait()
}

func locate(p Profile, dirs []string) (Found, bool) {
	path, ok := lookup(p.Bin, dirs)
	if !ok {
		return Found{}, false
	}
	f := Found{Name: p.Name, Path: path, Argv: []string{path}}
	f.Version = packageAround(path).Version
	if info, err := os.Stat(path); err == nil {
		f.stamp = fmt.Sprint(f.Version, info.Size(), info.ModTime())
	}
	f.show(moduleRoot(path))

	// A script is started through its interpreter's full path, because the PATH of
	// a sandbox may lead to another interpreter.
	if name := interpreter(path); name != "" {
		bin, ok := lookup(name, dirs)
		if !ok {
			return Found{}, false
		}
		f.Argv = []string{bin, path}
		if f.show(bin) {
			f.PathDirs = []string{filepath.Dir(bin)}
		}
	}
	return f, true
}

// show adds a path to those that the sandbox shows, and tells whether it is outside
// of the system's folders, which are always shown.
func (f *Found) show(path string) bool {
	if within(path, "/usr") || within(path, "/bin") {
		return false
	}
	if !slices.ContainsFunc(f.ReadOnly, func(shown string) bool { return within(path, shown) }) {
		f.ReadOnly = append(f.ReadOnly, path)
	}
	return true
}

// lookup finds an executable file by name and resolves its links.
func lookup(name string, dirs []string) (string, bool) {
	if name == "" {
		return "", false
	}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue // a relative entry means another program in every directory
		}
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// moduleRoot returns the outermost node_modules directory around path, which also
// contains the packages that path's own package needs, or path itself outside of
// any.
func moduleRoot(path string) string {
	const dir = "/node_modules/"
	if i := strings.Index(path, dir); i >= 0 {
		return path[:i+len(dir)-1]
	}
	return path
}

// interpreter returns the program that runs the script at path according to its
// "#!" line with env, or "" if path is no such script.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	words := strings.Fields(string(rest))
	if !ok || len(words) < 2 || filepath.Base(words[0]) != "env" {
		return ""
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			return w
		}
	}
	return ""
}

type npmPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// packageAround reads the package.json of the npm package that contains path.
func packageAround(path string) npmPackage {
	if !strings.Contains(path, "/node_modules/") {
		return npmPackage{}
	}
	for dir := filepath.Dir(path); filepath.Base(dir) != "node_modules"; dir = filepath.Dir(dir) {
		var p npmPackage
		b, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err == nil && json.Unmarshal(b, &p) == nil && p.Name != "" && p.Version != "" {
			return p
		}
	}
	return npmPackage{}
}

var versionPattern = lazy.New(`\d+\.\d+(\.\d+)?[-+.0-9A-Za-z]*`)

// askVersion runs the program with --version and ignores its exit code.
func askVersion(ctx context.Context, argv []string) string {
	cmd := exec.CommandContext(ctx, argv[0], append(slices.Clone(argv[1:]), "--version")...)
	cmd.WaitDelay = time.Second
	out, _ := cmd.Output()
	return versionPattern.FindString(string(out))
}

// within tells whether the clean path is dir or lies in it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return otherwise
}
