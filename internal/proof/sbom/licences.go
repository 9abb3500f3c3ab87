package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// terms are the licences of a module.
type terms struct {
	ids   []string // of those at its root, as SPDX names them, sorted
	texts []text   // of all its folders
}

// text is a file of a module that says under which terms it is given.
type text struct{ path, body string }

var (
	termsName = regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying|^notice|^patents`)
	aside     = []string{"testdata", "examples", "_examples", "vendor", "node_modules"}
)

// patents is what a grant of patents is called, which SPDX does not know.
const patents = "GooglePatentsFile"

// enough is how much of a text must be that of a known licence, in percent.
const enough = 75

// misread are the licences of files that are read wrongly, by module; each file was read by a person.
var misread = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk":        {"Apache-2.0", "MIT"}, // CC-BY-4.0 is for its documents
	"kernel.org/pub/linux/libs/security/libcap/psx": {"BSD-3-Clause"},      // or GPL-2.0, as one likes
}

// licencesOf reads the terms of the components, by their names, from the cache of modules. What is
// not there is fetched.
func licencesOf(parts []component) (map[string]terms, error) {
	folders, err := foldersOf(parts)
	if err != nil {
		return nil, err
	}
	out := map[string]terms{}
	for _, p := range parts {
		t, err := read(folders[p.Name], p.Name != "std") // Go itself has its terms at its root
		if err != nil {
			return nil, fmt.Errorf("the licences of %s: %w", p.Name, err)
		}
		if ids, ok := misread[p.Name]; ok {
			t.ids = ids
		}
		out[p.Name] = t
	}
	return out, nil
}

// foldersOf answers where the sources of the components are.
func foldersOf(parts []component) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, p := range parts {
		if p.Name != "std" {
			args = append(args, p.Name+"@"+p.Version)
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	folders := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Dir string }
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		folders[m.Path] = m.Dir
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	folders["std"] = strings.TrimSpace(string(root))
	return folders, err
}

// read finds the terms in a folder of sources, in those below too if deep.
func read(folder string, deep bool) (out terms, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != folder && (!deep || slices.Contains(aside, d.Name())):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !termsName.MatchString(d.Name()) || filepath.Ext(d.Name()) == ".go":
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		out.texts = append(out.texts, text{filepath.ToSlash(rel), string(body)})
		if found := licensecheck.Scan(body); filepath.Dir(rel) == "." && found.Percent >= enough {
			for _, m := range found.Match {
				if m.ID != patents {
					out.ids = append(out.ids, m.ID)
				}
			}
		}
		return err
	})
	slices.Sort(out.ids)
	out.ids = slices.Compact(out.ids)
	return out, err
}

// choice is the terms of a component, as the bill has them.
type choice struct {
	Licence    *named `json:"license,omitempty"`
	Expression string `json:"expression,omitempty"`
}

type named struct {
	ID string `json:"id"`
}

func (t terms) choices() []choice {
	switch len(t.ids) {
	case 0:
		return nil
	case 1:
		return []choice{{Licence: &named{t.ids[0]}}}
	}
	return []choice{{Expression: strings.Join(t.ids, " AND ")}}
}

// write prints the texts of all components, each under its name.
func write(to io.Writer, parts []component, all map[string]terms) error {
	var out strings.Builder
	for _, p := range parts {
		t := all[p.Name]
		fmt.Fprintf(&out, "%s\n%s %s: %s\n%[1]s\n", strings.Repeat("=", 80), p.Name, p.Version, strings.Join(t.ids, ", "))
		for _, each := range t.texts {
			fmt.Fprintf(&out, "\n--- %s\n\n%s\n", each.path, strings.TrimSpace(each.body))
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(to, out.String())
	return err
}
