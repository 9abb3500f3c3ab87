package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var namedCommand = regexp.MustCompile("(?:^|[`\"\\s(])yardmaster ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)?)")

// noCommands are words behind the name of the program that are no command: prose, and the
// statements that a box and a release are signed with.
var noCommands = map[string]bool{"program": true, "program that": true, "box key": true, "channel": true, "file": true}

// TestPrintedCommands holds that each command that a text of the server, of a box, of the
// client library or of the command line itself names is one that there is: next steps, refusals,
// holds, mails.
func TestPrintedCommands(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"help": true}
	for name := range hidden() {
		known[name] = true
	}
	for _, c := range commands() {
		words := strings.Fields(c.Words)
		known[c.Words] = true
		if len(words) == 1 {
			known[words[0]] = true
		}
	}
	seen := 0
	err := filepath.WalkDir("../../internal", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "proof" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
				words := strings.Fields(m[1])
				if known[m[1]] || known[words[0]] || noCommands[m[1]] {
					seen++
					continue
				}
				if len(words) == 1 && heads[words[0]] != "" && strings.HasSuffix(strings.TrimSpace(text), "yardmaster "+words[0]) {
					seen++ // the verb is added to it
					continue
				}
				t.Errorf("%s names `yardmaster %s`, which is no command", path, m[1])
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 30 {
		t.Errorf("only %d commands were found in texts", seen)
	}
}
