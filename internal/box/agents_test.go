package box_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/box/driver"
	"yardmaster/internal/box/modelproxy"
	"yardmaster/internal/proof/executable"
	"yardmaster/internal/protocol"
)

// TestMissingTokenIsKnownByItsWords holds that the proxy's answer to a call without
// a token does not count as a provider's refusal of a key.
func TestMissingTokenIsKnownByItsWords(t *testing.T) {
	t.Parallel()
	if !strings.Contains(modelproxy.NoToken, driver.NoRunToken) {
		t.Errorf("%q does not say %q", modelproxy.NoToken, driver.NoRunToken)
	}
}

// program plants a script that agents' users may run.
func program(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	plant(t, path, "#!/bin/sh\n"+text+"\n")
}

// plant writes a file that is executed.
func plant(t *testing.T, path, text string) {
	t.Helper()
	must(t, executable.Write(path, []byte(text), 0o755))
}

// TestAgentsComeAndGo holds that agents that are installed or removed while a box
// runs are reported at once, and that one that lacks its adapter is reported as
// such.
func TestAgentsComeAndGo(t *testing.T) {
	t.Parallel()
	dir := passable(t)
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Scan = 20 * time.Millisecond
	p.apart(cfg, driver.PathVariable+"="+dir)
	told := func(name string) (a protocol.AgentInfo, ok bool) {
		if len(p.hellos) == 0 {
			return a, false
		}
		all := p.hellos[len(p.hellos)-1].Agents
		i := slices.IndexFunc(all, func(a protocol.AgentInfo) bool { return a.Name == name })
		if i < 0 {
			return a, false
		}
		return all[i], true
	}
	p.until("a box without goose", func() bool { _, ok := told("goose"); return len(p.hellos) > 0 && !ok })
	program(t, dir+"/goose", "echo 1.34.0")
	p.until("goose is told", func() bool { a, ok := told("goose"); return ok && a.Version == "1.34.0" && a.Missing == "" })
	program(t, dir+"/claude", "echo 2.1.0")
	p.until("claude lacks its adapter", func() bool {
		a, ok := told("claude")
		return ok && strings.Contains(a.Missing, "yardmaster box agents install claude")
	})
	must(t, os.Remove(dir+"/goose"))
	p.until("goose is gone", func() bool { _, ok := told("goose"); return !ok })
	n := 0
	p.change(func() { n = len(p.hellos) })
	if n > 8 {
		t.Errorf("%d hellos for three changes", n)
	}
}

// TestInstallAgent holds that a fetched agent has a fixed version, that the command
// is shown before, that the agent is kept in the box's own folder and found there,
// and that an impossible installation is refused before anything runs.
func TestInstallAgent(t *testing.T) {
	p := newPlane(t)
	cfg := p.config()
	fake := programs(t, "node", "npm", "claude", "codex", "codex-acp", "claude-agent-acp")
	t.Setenv("PATH", fake)
	install := func(name string) (string, error) {
		var said strings.Builder
		err := box.InstallAgent(t.Context(), cfg.DataDir, "", name, &said)
		return said.String(), err
	}
	refused := func(name, want string) {
		t.Helper()
		if said, err := install(name); err == nil || !strings.Contains(err.Error(), want) || said != "" {
			t.Errorf("%s: %v, said %q; want %q", name, err, said, want)
		}
	}
	refused("emacs", `"emacs" cannot be fetched; these can: claude, codex, gemini, qwen`)
	refused("codex", "npm is not in the PATH: install Node.js 20 or later")
	program(t, fake+"/npm", "exit 1")
	refused("codex", "node is not in the PATH")
	program(t, fake+"/node", "echo v20.20.2")
	refused("claude", "is v20.20.2, and @agentclientprotocol/claude-agent-acp 0.100.0 needs Node.js 22: install Node.js 22 or later")
	if _, err := install("codex"); err == nil ||
		!strings.Contains(err.Error(), "npm did not install @agentclientprotocol/codex-acp 2.6.0") {
		t.Errorf("npm that fails: %v", err)
	}
	program(t, fake+"/npm", "true")
	if _, err := install("codex"); err == nil || !strings.Contains(err.Error(), "brought no program codex-acp") {
		t.Errorf("npm that brings nothing: %v", err)
	}
	if left, _ := filepath.Glob(cfg.DataDir + "/agents/*"); len(left) > 0 {
		t.Errorf("a failed fetch leaves %v", left)
	}
	program(t, fake+"/npm", `echo "npm runs"; [ "$1 $2" = "install --prefix" ] || exit 1
		mkdir -p "$3/node_modules/.bin" && printf '#!/bin/sh\necho "$@"; echo 2.6.0\n' >"$3/node_modules/.bin/codex-acp" && chmod 755 "$3/node_modules/.bin/codex-acp"`)
	said, err := install("codex")
	told, ran := strings.Index(said,
		"--ignore-scripts --no-audit --no-fund --no-update-notifier --save-exact @agentclientprotocol/codex-acp@2.6.0"),
		strings.Index(said, "npm runs")
	if err != nil || told < 0 || ran < told {
		t.Fatalf("%v, said %q", err, said)
	}
	if again, err := install("codex"); err != nil || !strings.Contains(again, "already") {
		t.Errorf("again: %v, %q", err, again)
	}
	all, err := box.Agents(t.Context(), cfg.DataDir, "")
	must(t, err)
	codex, claude := all[2], all[1]
	if codex.Name != "codex" || !codex.Ready || codex.Version != "2.6.0" || !strings.HasPrefix(codex.Program, cfg.DataDir) {
		t.Errorf("found %+v", codex)
	}
	if claude.Ready || !strings.Contains(claude.Todo,
		"`yardmaster box agents install claude` fetches @agentclientprotocol/claude-agent-acp 0.100.0") {
		t.Errorf("found %+v", claude)
	}
	p.start(cfg)
	p.until("the box offers it", func() bool {
		return len(p.hellos) > 0 && slices.ContainsFunc(p.hellos[0].Agents, func(a protocol.AgentInfo) bool {
			return a.Name == "codex" &&
				a.Version == "2.6.0"
		})
	})
	if _, err := box.Agents(t.Context(), t.TempDir(), ""); err == nil {
		t.Error("a folder without a box is taken for one")
	}
}
