package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/proof/program"
)

// TestBillOfTheProgram builds the program and compares its bill with the output of
// the go command.
func TestBillOfTheProgram(t *testing.T) {
	t.Parallel()
	binary, err := program.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "version", "-m", binary).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var first, second bytes.Buffer
	texts := filepath.Join(t.TempDir(), "licences.txt")
	if err := run(binary, texts, &first); err != nil {
		t.Fatal(err)
	}
	if err := run(binary, "", &second); err != nil || first.String() != second.String() {
		t.Error("the bill of the same program is another one", err)
	}
	var b bill
	if err := json.Unmarshal(first.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	have, ids := map[string]string{}, []string{}
	for _, c := range b.Components {
		have[c.Name] = c.Version
		if !strings.HasPrefix(c.Package, "pkg:golang/"+c.Name+"@") ||
			c.Name != "std" && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64) {
			t.Errorf("%+v", c)
		}
		for _, l := range c.Licences {
			ids = append(ids, strings.Split(l.Expression, " AND ")...)
			if l.Licence != nil {
				ids = append(ids, l.Licence.ID)
			}
		}
		if len(c.Licences) == 0 {
			t.Errorf("the terms of %s are not known: read them, and put them into misread", c.Name)
		}
	}
	slices.Sort(ids)
	may := []string{"", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0"}
	for _, is := range slices.Compact(ids) {
		if !slices.Contains(may, is) {
			t.Errorf("may the program be handed out with a part under %s? It may with %q", is, may)
		}
	}
	if all, err := os.ReadFile(texts); err != nil || bytes.Count(all, []byte("Permission is hereby granted")) < 20 {
		t.Errorf("the texts: %d bytes, %v", len(all), err)
	}
	lines := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(string(out), -1)
	if len(lines) < 40 {
		t.Fatalf("only %d modules are linked:\n%s", len(lines), out)
	}
	for _, l := range lines {
		if have[l[1]] != l[2] {
			t.Errorf("%s %s is linked, %q is in the bill", l[1], l[2], have[l[1]])
		}
	}
	if len(have) != len(lines)+1 || have["std"] == "" {
		t.Errorf("%d components for %d modules and the library, which is %q", len(have), len(lines), have["std"])
	}
	if len(b.Dependencies) != 1 || len(b.Dependencies[0].DependsOn) != len(have) || len(b.Metadata.Component.Hashes) != 1 {
		t.Errorf("%+v %+v", b.Metadata, b.Dependencies)
	}
}

func TestReplacedModule(t *testing.T) {
	b := of(&debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{
			Path:    "example.org/old",
			Version: "v1.0.0",
			Replace: &debug.Module{
				Path:    "example.org/New",
				Version: "v2.0.0+incompatible",
				Sum:     "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
			},
		},
	}}, "p")
	got := b.Components[1]
	if got.Name != "example.org/New" || got.Package != "pkg:golang/example.org/New@v2.0.0%2Bincompatible?type=module" ||
		got.Hashes[0].Content != "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" {
		t.Errorf("%+v", got)
	}
}
