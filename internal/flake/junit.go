package flake

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// maxJUnit limits one JUnit file, in bytes.
const maxJUnit = 4 << 20

// readJUnit finds the tests that failed in JUnit files. A file that is no XML counts up to
// the place of its fault.
func readJUnit(files [][]byte) []failed {
	var out once
	for _, f := range files {
		if len(f) > maxJUnit {
			f = f[:maxJUnit]
		}
		readCases(&out, xml.NewDecoder(bytes.NewReader(f)))
	}
	return out.tests
}

func readCases(out *once, d *xml.Decoder) {
	d.Strict = false
	var name, class, file string
	at := -1 // the test whose message is the next text
	for {
		token, err := d.RawToken()
		if err != nil {
			return
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "testcase":
				name, class, file, at = attr(e, "name"), attr(e, "classname"), attr(e, "file"), -1
			case "failure", "error":
				if name == "" {
					continue
				}
				t := failed{id: strings.TrimSpace(class + " " + name), message: firstLine(attr(e, "message"))}
				if file != "" {
					t.files = []string{file}
				}
				i, fresh := out.add(t)
				if at = -1; fresh && t.message == "" {
					at = i
				}
			}
		case xml.CharData:
			if text := firstLine(string(e)); at >= 0 && text != "" {
				out.tests[at].message, at = text, -1
			}
		case xml.EndElement:
			if e.Name.Local == "testcase" {
				name, at = "", -1
			}
		}
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// firstLine is the first line of a text that is not blank.
func firstLine(s string) string {
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}
