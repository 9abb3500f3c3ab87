package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/box/driver"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/lazy"
)

// agentsDir is the folder, inside the work folder, for the agents that InstallAgent
// fetches. It has one folder for each package and version, which is never changed.
const agentsDir = "agents"

// agentDir is the folder of the fetched agent that p describes.
func agentDir(work string, p driver.Profile) string {
	return filepath.Join(work, agentsDir, p.Name+"-"+p.Version)
}

// binDirs lists the folders that hold the programs of fetched agents.
func binDirs(work string) (out []string) {
	for _, p := range driver.Profiles() {
		if p.Version != "" {
			out = append(out, filepath.Join(agentDir(work, p), "node_modules", ".bin"))
		}
	}
	return out
}

// scanAgents searches for installed agents and tells whether the result differs
// from the last search. Other goroutines may call known meanwhile.
func (s *setup) scanAgents(ctx context.Context, log *slog.Logger) bool {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	scan := driver.Search(binDirs(s.work)...)
	if s.scanned && scan.Same(s.scan) {
		return false
	}
	before := s.scan.Lacking
	s.scan, s.scanned = driver.Scan{Found: slices.Clone(scan.Found), Lacking: scan.Lacking}, true
	scan.AskVersions(ctx)
	runnable := s.runnableAgents(scan.Found, log)
	s.mu.Lock()
	s.agents, s.lacking = runnable, scan.Lacking
	s.mu.Unlock()
	names := make([]string, len(runnable))
	for i, f := range runnable {
		names[i] = strings.TrimSpace(f.Name + " " + f.Version)
	}
	log.Info("agents found", "agents", names)
	for _, l := range scan.Lacking {
		if !slices.Contains(before, l) {
			log.Warn("agent cannot be used as it is", "agent", l.Agent, "reason", l.String())
		}
	}
	return true
}

// foundAgents returns the agents that the last search found, and those that lack
// something.
func (s *setup) foundAgents() ([]driver.Found, []driver.Lack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agents, s.lacking
}

// agent finds an installed agent by its name.
func (s *setup) agent(name string) (driver.Found, bool) {
	found, _ := s.foundAgents()
	if i := slices.IndexFunc(found, func(f driver.Found) bool { return f.Name == name }); i >= 0 {
		return found[i], true
	}
	return driver.Found{}, false
}

// watchAgents searches for agents every Timing.Look until ctx is done. The box
// offers agents that are installed while it runs, and stops to offer those that are
// removed.
func (b *box) watchAgents(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, b.cfg.Timing.Scan)
		if ctx.Err() == nil && b.setup.scanAgents(ctx, b.log) {
			nudge(b.online) // says hello anew
		}
	}
}

// AgentState is the state of one agent on a machine.
type AgentState struct {
	Name    string
	Version string // version of the program that was found
	Program string // path of the program; empty for the built-in agent and for one that is not installed
	Ready   bool
	Todo    string // what the user has to do to make it ready; empty if it is ready
}

// Agents returns the state of every known agent on the machine of a box. It fails
// with ErrNotEnrolled if dataDir has no identity.
func Agents(ctx context.Context, dataDir, workDir string) ([]AgentState, error) {
	work, err := workFolder(dataDir, workDir)
	if err != nil {
		return nil, err
	}
	return agentsIn(ctx, binDirs(work)...), nil
}

// AgentsHere is Agents for a machine without a box: what one would find.
func AgentsHere(ctx context.Context) []AgentState { return agentsIn(ctx) }

func agentsIn(ctx context.Context, dirs ...string) []AgentState {
	scan := driver.Detect(ctx, dirs...)
	var out []AgentState
	for _, p := range driver.Profiles() {
		s := AgentState{Name: p.Name}
		found := slices.IndexFunc(scan.Found, func(f driver.Found) bool { return f.Name == p.Name })
		lack := slices.IndexFunc(scan.Lacking, func(l driver.Lack) bool { return l.Agent == p.Name })
		switch {
		case found >= 0:
			s.Ready, s.Version, s.Program = true, scan.Found[found].Version, scan.Found[found].Path
		case lack >= 0:
			s.Program, s.Todo = scan.Lacking[lack].Has, scan.Lacking[lack].String()
		case p.Version != "":
			s.Todo = "`yardmaster box agents install " + p.Name + "` fetches " + p.Package + " " + p.Version
		default:
			s.Todo = "`npm install --global " + p.Package + "` gets it"
		}
		out = append(out, s)
	}
	return out
}

// workFolder is the folder in which the box of a data folder keeps what its agents
// use.
func workFolder(dataDir, workDir string) (string, error) {
	if _, err := LoadIdentity(dataDir); err != nil {
		return "", err
	}
	for _, dir := range []string{workDir, WorkDir(dataDir), dataDir} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	return "", errors.New("the box has no folder")
}

// installTime bounds a fetch: an agent has some hundred megabytes.
const installTime = 20 * time.Minute

var nodeVersion = lazy.New(`^v(\d+)\.`)

// InstallAgent fetches the program that drives an agent from npm, in the version
// that the box was tested with, into the box's own folder. It writes the command to
// say before it runs it. A running box finds the agent by itself.
func InstallAgent(ctx context.Context, dataDir, workDir, name string, say io.Writer) error {
	p, err := installable(name)
	if err != nil {
		return err
	}
	work, err := workFolder(dataDir, workDir)
	if err != nil {
		return err
	}
	npm, err := checkNode(ctx, p)
	if err != nil {
		return err
	}
	dir := agentDir(work, p)
	if _, err := os.Stat(dir); err == nil {
		fmt.Fprintf(say, "%s %s is in %s already.\n", p.Package, p.Version, dir)
		return nil
	}
	parent := filepath.Dir(dir)
	// The agents may run as another user, and npm follows the umask.
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	if sandbox.Separate() {
		if err := os.Chmod(parent, 0o755); err != nil {
			return err
		}
	}
	unfinished, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	if err := os.Chmod(unfinished, 0o755); err != nil {
		return err
	}
	args := []string{
		"install", "--prefix", unfinished, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier",
		"--save-exact", p.Package + "@" + p.Version,
	}
	fmt.Fprintf(say, "This runs now, and asks the npm registry that this machine is set up for:\n  %s %s\n", npm, strings.Join(args, " "))
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = unfinished, say, say, time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm did not install %s %s: %w", p.Package, p.Version, err)
	}
	if _, err := os.Stat(filepath.Join(unfinished, "node_modules", ".bin", p.Bin)); err != nil {
		return fmt.Errorf("the package %s %s brought no program %s", p.Package, p.Version, p.Bin)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return err
	}
	fmt.Fprintf(say, "%s can be used now: %s %s is in %s. A box that runs offers it within %s.\n",
		p.Name, p.Package, p.Version, dir, scanEvery)
	return nil
}

// installable finds an agent that can be fetched, by its name.
func installable(name string) (driver.Profile, error) {
	var names []string
	for _, p := range driver.Profiles() {
		if p.Version == "" {
			continue
		}
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return driver.Profile{}, fmt.Errorf("%q cannot be fetched; these can: %s", name, strings.Join(names, ", "))
}

// checkNode finds npm, and refuses a Node.js on which the agent would not run.
func checkNode(ctx context.Context, p driver.Profile) (npm string, err error) {
	get := fmt.Sprintf("install Node.js %d or later, which brings npm, into the PATH of the box", p.Node)
	if npm, err = exec.LookPath("npm"); err != nil {
		return "", errors.New("npm is not in the PATH: " + get)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("node is not in the PATH: " + get)
	}
	ctx, cancel := context.WithTimeout(ctx, toolWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	found := nodeVersion.FindStringSubmatch(string(out))
	if err != nil || found == nil {
		return "", fmt.Errorf("%s does not tell its version: %s", node, get)
	}
	if major, err := strconv.Atoi(found[1]); err != nil || major < p.Node {
		return "", fmt.Errorf("%s is %s, and %s %s needs Node.js %d: %s",
			node, strings.TrimSpace(string(out)), p.Package, p.Version, p.Node, get)
	}
	return npm, nil
}
