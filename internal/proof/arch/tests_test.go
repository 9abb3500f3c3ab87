package arch

import (
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// changes matches a statement that changes a table, and captures the table.
var changes = regexp.MustCompile(`\b(INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)\b`)

// TestTestsChangeTheirOwnTables holds that a domain's tests change the tables of that
// domain only. internal/proof/seed inserts the rows of other domains, so that a
// column that must have a value gets it in one place.
func TestTestsChangeTheirOwnTables(t *testing.T) {
	own, made := map[string]map[string]bool{}, map[string]bool{}
	for _, f := range product(t) {
		if !strings.HasPrefix(f.pkg(), "domain/") {
			continue
		}
		of := domainOf(f.pkg())
		if own[of] == nil {
			own[of] = map[string]bool{path.Base(of) + "s": true}
		}
		for _, m := range changes.FindAllSubmatch(f.text, -1) {
			if string(m[1]) == "INSERT INTO" {
				own[of][string(m[2])], made[string(m[2])] = true, true
			}
		}
	}
	if len(made) < 40 {
		t.Fatalf("only %d tables were found: the search is broken", len(made))
	}
	for _, f := range files(t) {
		if !f.test || !strings.HasPrefix(f.pkg(), "domain/") {
			continue
		}
		for _, m := range changes.FindAllSubmatch(f.text, -1) {
			if table := string(m[2]); made[table] && !own[domainOf(f.pkg())][table] {
				t.Errorf("%s changes %s, which another domain owns: use internal/proof/seed, or add what it lacks there", f.path, table)
			}
		}
	}
}

// alone lists the tests of the domains and the program that do not run in parallel,
// by package and name, and why.
var alone = map[string]string{
	"domain/repo TestGraceOfTheServer": "it changes what is in force for all policy files",
}

// TestTestsRunInParallel holds that tests run in parallel, because most of their time
// they wait for a database, a server or a box.
func TestTestsRunInParallel(t *testing.T) {
	for _, f := range files(t) {
		if !f.test || f.pkg() != "app" && !strings.HasPrefix(f.pkg(), "domain/") {
			continue
		}
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" ||
				fn.Name.Name == "TestTranscripts" {
				continue
			}
			switch name := f.pkg() + " " + fn.Name.Name; {
			case !parallel(fn) && alone[name] == "":
				t.Errorf("%s runs alone: let it begin with t.Parallel(), or say why not in alone of "+
					"internal/proof/arch/tests_test.go", name)
			case parallel(fn) && alone[name] != "":
				t.Errorf("%s runs beside others: remove it from alone of internal/proof/arch/tests_test.go", name)
			}
		}
	}
}

// unraced lists the packages that start goroutines and are not run under the race
// detector, and why.
var unraced = map[string]string{
	"app":                "its tests start whole servers: minutes",
	"box":                "its tests start agents as processes: minutes",
	"box/sandbox":        "what it starts runs in processes of its own",
	"codehost/gitfolder": "what it starts are git's processes",
	"cli":                "its tests start the program as a process",
	"proof/bench":        "its tests measure nothing; it runs for minutes",
	"proof/chaos":        "harms processes",
	"proof/rig":          "starts whole servers",
}

// TestRaceCoversWhatRunsAtOnce holds that every package that starts goroutines runs
// under the race detector or is in unraced.
func TestRaceCoversWhatRunsAtOnce(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, line, found := strings.Cut(string(makefile), "\nRACE := ")
	line, _, _ = strings.Cut(strings.ReplaceAll(line, "\\\n", " "), "\n")
	if !found {
		t.Fatal("the Makefile runs nothing under the race detector")
	}
	raced := func(pkg string) bool {
		return slices.ContainsFunc(strings.Fields(line), func(p string) bool {
			p = strings.TrimPrefix(p, "./internal/")
			tree, all := strings.CutSuffix(p, "/...")
			return p == pkg || all && (pkg == tree || strings.HasPrefix(pkg, tree+"/"))
		})
	}
	starts, tested := map[string]bool{}, map[string]bool{}
	for _, f := range files(t) {
		tested[f.pkg()] = tested[f.pkg()] || f.test
		ast.Inspect(f.tree, func(n ast.Node) bool {
			_, is := n.(*ast.GoStmt)
			call, isCall := n.(*ast.SelectorExpr)
			if is || isCall && call.Sel.Name == "Go" {
				starts[f.pkg()] = starts[f.pkg()] || !f.test
			}
			return true
		})
	}
	for _, pkg := range slices.Sorted(maps.Keys(starts)) {
		switch covered := raced(pkg); {
		case !starts[pkg] || !tested[pkg]:
		case !covered && unraced[pkg] == "":
			t.Errorf("%s starts goroutines: add ./internal/%s to RACE in the Makefile", pkg, pkg)
		case covered && unraced[pkg] != "":
			t.Errorf("%s is run under the race detector: remove it from unraced in internal/proof/arch/tests_test.go", pkg)
		}
	}
	for pkg := range unraced {
		if !starts[pkg] {
			t.Errorf("%s starts no goroutine: remove it from unraced in internal/proof/arch/tests_test.go", pkg)
		}
	}
}

// parallel tells whether a test calls t.Parallel itself.
func parallel(fn *ast.FuncDecl) bool {
	found := false
	for _, s := range fn.Body.List {
		ast.Inspect(s, func(n ast.Node) bool {
			if _, nested := n.(*ast.FuncLit); nested {
				return false
			}
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Parallel" {
				found = true
			}
			return true
		})
	}
	return found
}
