package driver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/version"
)

func plant(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestDetect(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	modules := base + "/npm/node_modules"
	script := modules + "/@agentclientprotocol/codex-acp/dist/index.js"
	plant(t, script, "#!/usr/bin/env node\n", 0o755)
	plant(t, modules+"/@agentclientprotocol/codex-acp/package.json", `{"name":"@agentclientprotocol/codex-acp","version":"2.6.0"}`, 0o644)
	plant(t, modules+"/@agentclientprotocol/codex-acp/dist/package.json", `{"type":"module"}`, 0o644)
	if err := os.MkdirAll(modules+"/.bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../@agentclientprotocol/codex-acp/dist/index.js", modules+"/.bin/codex-acp"); err != nil {
		t.Fatal(err)
	}
	plant(t, base+"/node/bin/node", "", 0o755)
	plant(t, base+"/bin/goose", "#!/bin/sh\necho ' goose v1.34.0 (abc)'; exit 1\n", 0o755)
	plant(t, base+"/bin/gemini", "not executable", 0o644)
	t.Setenv("PATH", base+"/bin:"+base+"/node/bin:relative")
	t.Setenv(PathVariable, modules+"/.bin")

	want := []Found{
		{Name: "builtin", Version: version.Own},
		{Name: "codex", Version: "2.6.0", Path: script, Argv: []string{base + "/node/bin/node", script},
			PathDirs: []string{base + "/node/bin"}, ReadOnly: []string{modules, base + "/node/bin/node"}},
		{Name: "goose", Version: "1.34.0", Path: base + "/bin/goose", Argv: []string{base + "/bin/goose"},
			ReadOnly: []string{base + "/bin/goose"}},
	}
	scan := Detect(t.Context())
	got := scan.Found
	if len(got) != len(want) {
		t.Fatalf("found %+v", got)
	}
	for i, w := range want {
		g := got[i]
		if g.Name != w.Name || g.Version != w.Version || g.Path != w.Path || !slices.Equal(g.Argv, w.Argv) ||
			!slices.Equal(g.PathDirs, w.PathDirs) || !slices.Equal(g.ReadOnly, w.ReadOnly) {
			t.Errorf("found %+v\nwant  %+v", g, w)
		}
	}

	// Claude Code as everybody has it, and what happens to it.
	if len(scan.Lacking) != 0 || !scan.Same(Search()) {
		t.Errorf("%+v lacks something, or is not %+v", scan, Search())
	}
	plant(t, base+"/bin/claude", "#!/bin/sh\n", 0o755)
	lacks := Search()
	want1 := Lack{Agent: "claude", Has: base + "/bin/claude", Package: "@agentclientprotocol/claude-agent-acp"}
	if lacks.Same(scan) || !slices.Equal(lacks.Lacking, []Lack{want1}) || len(lacks.Found) != len(scan.Found) {
		t.Errorf("with claude: %+v", lacks)
	}
	if said := want1.String(); said != base+"/bin/claude is here without the adapter that drives it, "+
		"@agentclientprotocol/claude-agent-acp: `yardmaster box agents install claude` fetches that" {
		t.Error(said)
	}
	plant(t, base+"/own/claude-agent-acp", "#!/bin/sh\n", 0o755)
	with := Search(base + "/own")
	if len(with.Lacking) != 0 || len(with.Found) != 4 || with.Found[1].Path != base+"/own/claude-agent-acp" {
		t.Errorf("with its adapter: %+v", with)
	}
	if err := os.Remove(base + "/bin/claude"); err != nil {
		t.Fatal(err)
	}
	plant(t, base+"/bin/claude-code-acp", "#!/bin/sh\n", 0o755)
	if old := Search(); len(old.Lacking) != 1 || !old.Lacking[0].Former ||
		!strings.Contains(old.Lacking[0].String(), "not driven any more") {
		t.Errorf("with the adapter of before: %+v", old)
	}
	plant(t, base+"/bin/goose", "#!/bin/sh\necho 1.35.0 # a new one\n", 0o755)
	if Search().Same(scan) {
		t.Error("an agent that was replaced is taken for the same")
	}
}
