package answer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/llm/answer"
	"yardmaster/internal/proof/recorded"
)

// FuzzReader reads any bytes as an answer of each form, whole and in pieces: the same
// comes out, with counts that are possible, and never a whole answer of one that is
// cut before its end has come.
func FuzzReader(f *testing.F) {
	for _, c := range recorded.Served(f) {
		if body := c.Answer.Body(); len(body) < 16<<10 && !c.Answer.None {
			f.Add(uint16(c.Answer.Status), c.Answer.Header.Get("Content-Type"), body, 7)
		}
	}
	f.Fuzz(func(t *testing.T, status uint16, kind string, body []byte, cut int) {
		h := http.Header{"Content-Type": {kind}, "Retry-After": {kind}}
		for _, api := range apis {
			o := answer.Options{API: api, Status: int(status), Header: h, Keep: true}
			var said strings.Builder
			o.Text = func(s string) { said.WriteString(s) }
			whole, parts := answer.New(o), answer.New(answer.Options{API: api, Status: int(status), Header: h, Keep: true})
			whole.Write(body)
			at := min(max(cut, 0), len(body))
			parts.Write(body[:at])
			for i := range body[at:] {
				parts.Write(body[at+i : at+i+1])
			}
			var broken error
			if cut < 0 {
				broken = io.ErrUnexpectedEOF
			}
			whole.End(broken)
			parts.End(broken)
			a, b := whole.Answer(), parts.Answer()
			if d := cmp.Diff(a, b); d != "" {
				t.Fatalf("%s: in pieces another answer: %s", api, d)
			}
			if u := a.Usage; u != nil &&
				(min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.Reasoning) < 0 || u.Reasoning > u.Output) {
				t.Fatalf("%+v", u)
			}
			if a.Failure == nil && a.Stop == answer.None {
				t.Fatalf("%s: neither an end nor a failure: %+v", api, a)
			}
			if a.Failure != nil && a.Failure.Elsewhere && whole.Begun() {
				t.Fatal("elsewhere, although the answer has begun")
			}
			if said.String() != "" && !whole.Begun() || len(a.Text) > 0 && !utf8.ValidString(a.Text) {
				t.Fatalf("%q was said of %q", said.String(), a.Text)
			}
			for _, c := range a.Tools {
				if len(c.Arguments) == 0 || strings.TrimSpace(string(c.Arguments)) == "" {
					t.Fatal("a call without arguments")
				}
			}
			if _, err := json.Marshal(a.Text); err != nil {
				t.Fatal(err)
			}
		}
	})
}
