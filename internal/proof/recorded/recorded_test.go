package recorded

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// The files are of the form that README.md describes, and each case is about
// something of its own.
func TestCases(t *testing.T) {
	t.Parallel()
	about, names := map[string]string{}, 0
	for _, c := range All(t) {
		names++
		if strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%s: a name has small letters, digits and hyphens", c.Name)
		}
		if other := about[c.About]; other != "" {
			t.Errorf("%s is about the same as %s", c.Name, other)
		}
		about[c.About] = c.Name
		a := c.Answer
		if n := a.length(); n >= 0 && (a.End == "" && n != len(a.Body()) || a.End != "" && n <= len(a.Body())) {
			t.Errorf("%s: Content-Length is %d, the body has %d bytes", c.Name, n, len(a.Body()))
		}
		if a.chunked() && a.length() >= 0 {
			t.Errorf("%s has two framings", c.Name)
		}
		if a.Whole() && !a.chunked() && a.length() < 0 && a.Header.Get("Connection") != "close" && a.Status != 204 {
			t.Errorf("%s: a body without a length says Connection: close", c.Name)
		}
		if a.None {
			continue
		}
		for _, how := range a.Variants() {
			v, err := a.Vary(how)
			if err != nil || !bytes.Equal(v.Body(), a.Body()) {
				t.Errorf("%s~%s has other bytes: %v", c.Name, how, err)
			}
		}
		for _, how := range a.Cuts() {
			if v, err := a.Vary(how); err != nil || !bytes.HasPrefix(a.Body(), v.Body()) {
				t.Errorf("%s~%s is no beginning: %v", c.Name, how, err)
			}
		}
	}
	if names < 256 {
		t.Errorf("there are only %d cases", names)
	}
}

// What stands in unserved.tsv is of an API or a form that the gateway does not take,
// and nothing else is.
func TestUnserved(t *testing.T) {
	t.Parallel()
	apis := []string{"anthropic.messages", "openai.chat", "openai.responses", "google.generate", "bedrock.invoke"}
	for _, c := range All(t) {
		coded := c.Answer.Header.Get("Content-Encoding") != ""
		array := strings.HasSuffix(c.Call.Path, ":streamGenerateContent")
		refused := c.API == "bedrock.converse" && c.Answer.Status/100 != 2 // Bedrock refuses all calls alike
		served := (slices.Contains(apis, c.API) || refused) && !array && !coded
		if served != (c.Unserved == "") {
			t.Errorf("%s: served is %v, and unserved.tsv says %q", c.Name, served, c.Unserved)
		}
	}
}

// A faulty table is refused.
func TestTableIsChecked(t *testing.T) {
	t.Parallel()
	good := Table{About: "a", API: "openai.chat", Version: "v1", Provider: "any", Known: "made"}
	good.Call.Path, good.Want.Stop = "/", "end"
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	n := int64(3)
	for what, change := range map[string]func(*Table){
		"another API":         func(t *Table) { t.API = "telex" },
		"no source":           func(t *Table) { t.Known = "read" },
		"no end, no error":    func(t *Table) { t.Want.Stop = "" },
		"a kind of its own":   func(t *Table) { t.Want.Error = &Failure{Kind: "bad luck"} },
		"a limit of a server": func(t *Table) { t.Want.Error = &Failure{Kind: "server", Limit: &n} },
		"another route, late": func(t *Table) { t.Want = Want{Text: "a", Error: &Failure{Kind: "cut"}, AnotherRoute: true} },
		"a nameless call":     func(t *Table) { t.Want.Tools = []Tool{{ID: "1", Text: "x"}} },
		"counts":              func(t *Table) { t.Want.Usage = &Usage{Output: 1, Reasoning: 2} },
	} {
		bad := good
		change(&bad)
		if bad.check() == nil {
			t.Errorf("%s passed", what)
		}
	}
	for _, text := range []string{"HTTP/1.1\n", "HTTP/1.1 200 OK\nA b\n", "HTTP/1.1 200 OK\n\nabc\n", "HTTP/1.1 200 OK\n\n!cut\n|a\n",
		"HTTP/1.1 200 OK\n\n\\\\q\n", "HTTP/1.1 200 OK\n\n*0 a\n", "HTTP/1.1 200 OK\n\n!bang\n", "a\r\n"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q passed", text)
		}
	}
}
