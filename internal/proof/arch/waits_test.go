package arch

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// timed lists the test files that name a time for a wait, and why: what they test is the
// time itself. docs/testing.md says how every other test waits.
var timed = map[string]string{
	"internal/cli/keys_test.go":                      "kills at any moment, after it has killed at one that is known",
	"internal/app/slow_test.go":                      "attacks at a pace",
	"internal/app/walk_money_test.go":                "gives up calls in the middle, wherever that is",
	"internal/app/walk_test.go":                      "says how many steps it took a second",
	"internal/box/plane_test.go":                     "is the control plane, and answers when the box has said how long it waits",
	"internal/codehost/builtin/bomb_test.go":         "gives up a push that must not succeed, and says when",
	"internal/codehost/github/client_test.go":        "gives up a call while the host makes it wait, and knows what the host's clock says",
	"internal/db/due/kill_test.go":                   "is a node of its own, whose work takes a while",
	"internal/proof/e2e/environments/keeper_test.go": "is a process of its own, which is told the patience of its row",
	"internal/proof/e2e/environments/place_test.go":  "says how long rows took, and waits in a cleanup, when the test's context is over",
	"internal/proof/frontdoor/frontdoor_test.go":     "says how long commands took",
}

// bounds of package time and its like that end a wait.
var (
	waiting   = []string{"After", "Sleep", "NewTimer", "NewTicker", "Tick", "AfterFunc"}
	deadlines = regexp.MustCompile(`\.Set(Read|Write)?Deadline\(time\.Now\(\)(?:\.Add\([^p]|\))|\btime\.Since\(|WithTimeout\([^\n]*\btime\.(Nano|Micro|Milli)?[sS]econd|WithTimeout\([^\n]*\btime\.Minute`)
)

// TestWaitsOfTests holds that a test waits for what it waits for, and that
// internal/proof/patience alone says how long: no time.After, no Sleep, no literal
// deadline, no measured duration outside of testing/synctest.
func TestWaitsOfTests(t *testing.T) {
	users := map[string][]string{}
	for _, f := range files(t) {
		if !f.test || f.pkg() == "proof/patience" || f.uses("testing/synctest", "Test") ||
			strings.HasSuffix(f.path, "bench_test.go") { // a benchmark measures
			continue
		}
		if f.uses("time", waiting...) {
			users[f.path] = append(users[f.path], "a timer")
		}
		for _, m := range deadlines.FindAll(f.text, -1) {
			users[f.path] = append(users[f.path], string(m))
		}
	}
	exceptions(t, "names a time for a wait", users, timed)
}

// shortLeases lists the test files that give a lease less than 20 s, and why.
var shortLeases = map[string]string{
	"internal/config/config_test.go": "no server is started with its values",
}

var leaseFlag = regexp.MustCompile(`"--lease",\s*"([^"]+)"`)

// TestLeasesOfTests holds that no test has to work within the lease of a run.
func TestLeasesOfTests(t *testing.T) {
	users := map[string][]string{}
	for _, f := range files(t) {
		if !f.test && !strings.HasPrefix(f.pkg(), "proof/") {
			continue
		}
		for _, m := range leaseFlag.FindAllSubmatch(f.text, -1) {
			if d, err := time.ParseDuration(string(m[1])); err != nil || d < 20*time.Second {
				users[f.path] = append(users[f.path], string(m[1]))
			}
		}
	}
	exceptions(t, "gives a lease less than 20 s", users, shortLeases)
}

// freed lists the test files that take a port that the kernel chooses, let it go and use
// it afterwards, and why.
var freed = map[string]string{}

// TestPortsOfTests holds that no test keeps the number of a port that it has let go: in
// between, the kernel gives it to anybody. internal/proof/loopback holds ports.
func TestPortsOfTests(t *testing.T) {
	users := map[string][]string{}
	for _, f := range files(t) {
		if f.test {
			if names := letGo(f.tree); names != nil {
				users[f.path] = names
			}
		}
	}
	exceptions(t, "uses a port of the kernel's after it has let it go", users, freed)
}

// handsOutPort tells whether a function answers an address or a port, which it has let go by then.
func handsOutPort(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil {
		return false
	}
	kind, ok := fn.Type.Results.List[0].Type.(*ast.Ident)
	return ok && (kind.Name == "int" || kind.Name == "string")
}

// letGo returns the functions that listen at port 0, take the address and close the
// listener without serving on it.
func letGo(tree *ast.File) (out []string) {
	for _, d := range tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		zero, accepts, closes, addr := false, false, false, handsOutPort(fn)
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.DeferStmt: // it is held until then
				sel, ok := n.Call.Fun.(*ast.SelectorExpr)
				closes = closes || ok && sel.Sel.Name == "Close" && handsOutPort(fn)
				return false
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Cleanup" {
					return false
				}
			case *ast.BasicLit:
				text, _ := strconv.Unquote(n.Value)
				zero = zero || strings.HasPrefix(text, "127.0.0.") && strings.HasSuffix(text, ":0")
			case *ast.SelectorExpr:
				switch n.Sel.Name {
				case "Accept", "Serve", "ServeTLS", "Listener", "DialContext":
					accepts = true
				case "Close":
					closes = true
				case "Addr":
					addr = true
				}
			}
			return true
		})
		if zero && closes && addr && !accepts {
			out = append(out, fn.Name.Name)
		}
	}
	return out
}

// written are the tests that may write a file that can be run by os.WriteFile.
var written = map[string]string{}

// TestProgramsOfTests holds that a program that a test writes is not "busy" when it is run
// (internal/proof/executable).
func TestProgramsOfTests(t *testing.T) {
	writers := map[string][]string{}
	for _, f := range files(t) {
		if !f.test && !strings.HasPrefix(f.path, "internal/proof/") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 3 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "WriteFile" {
				return true
			}
			if mode, ok := call.Args[2].(*ast.BasicLit); ok {
				if bits, err := strconv.ParseUint(mode.Value, 0, 32); err == nil && bits&0o111 != 0 {
					writers[f.path] = append(writers[f.path], mode.Value)
				}
			}
			return true
		})
	}
	exceptions(t, "writes a program by os.WriteFile", writers, written)
}
