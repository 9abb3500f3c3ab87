package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCallsOfOneSource: a call that one source makes moves there, and one that two make stays.
func TestCallsOfOneSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sources := map[string]string{
		clientFile: "export const boxGet = /* @__PURE__ */ op<{ \"id\": string }, Box>(\"box.get\", \"GET\", \"/v1/boxes/{id}\", \"read:boxes\");\n" +
			"export const boxList = /* @__PURE__ */ op<{}, Boxes>(\"box.list\", \"GET\", \"/v1/boxes\", \"read:boxes\");\n" +
			"export const runTail = /* @__PURE__ */ tail<{ \"id\": string }>(\"/v1/runs/{id}/tail\");\n",
		"one.tsx": "import {\n  boxGet,\n  boxList,\n  type Box,\n} from \"./client.gen\";\n",
		"two.ts":  "import { boxList, runTail } from \"../client.gen\";\n",
	}
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	moved, err := alone(dir)
	if err != nil || len(moved) != 2 {
		t.Fatalf("%d calls move: %v, %v", len(moved), moved, err)
	}
	one, two := withCalls(sources["one.tsx"], moved), withCalls(sources["two.ts"], moved)
	if !strings.Contains(one, `import { boxList, type Box } from "./client.gen"; import { op as op_`) ||
		!strings.Contains(one, `const boxGet = /* @__PURE__ */ op_<`) || !strings.Contains(two, `const runTail = /* @__PURE__ */ tail_<`) {
		t.Errorf("one.tsx: %s\ntwo.ts: %s", one, two)
	}
	if _, err := alone(t.TempDir()); err == nil {
		t.Error("a folder without a client has calls")
	}
}
