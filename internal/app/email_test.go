package app

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
)

// TestAddressesAreCheckedWhereTheyAreRead holds that no input of format email takes what is
// no address, or another one than people see.
func TestAddressesAreCheckedWhereTheyAreRead(t *testing.T) {
	t.Parallel()
	ops := Ops()
	for i := range ops {
		ops[i].Holder = nil
	}
	h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{}}, ops) // every call is let in
	var read []string
	for _, o := range ops {
		for _, f := range o.Shape().Fields {
			if f.Tag.Get("format") != "email" {
				continue
			}
			if f.Where != op.InBody {
				t.Errorf("%s: %s is no member of the body; this test sends bodies", o.ID, f.Name)
			}
			read = append(read, o.ID)
			for _, bad := range []string{
				"ada", "@", "@acme.example", "Ada <ada@acme.example>", " ada@acme.example", "ada@acme.example(eve)", "ada@eve@acme.example",
				"ad\u202ea@acme.example", "ada@acme\u200b.example",
			} {
				body, err := json.Marshal(map[string]string{f.Name: bad})
				if err != nil {
					t.Fatal(err)
				}
				path := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(o.Path, sampleID)
				req := httptest.NewRequest(o.Method, path, strings.NewReader(string(body)))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Authorization", "Bearer x")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, req)
				var p struct{ Errors map[string][]string }
				if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 400 ||
					!slices.Contains(p.Errors[f.Name], "must be an e-mail address") {
					t.Errorf("%s %s %q: %d %s", o.ID, f.Name, bad, w.Code, w.Body)
				}
			}
		}
	}
	if len(read) < 7 {
		t.Errorf("only these read an address: %v", read)
	}
}
