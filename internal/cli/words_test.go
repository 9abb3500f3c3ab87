package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
)

// No command drops words: what an argument with an ellipsis may repeat is all sent, as it was written.
func TestEveryWordIsSent(t *testing.T) {
	t.Parallel()
	n := newNoting(t)
	var mu sync.Mutex
	var sent strings.Builder
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		_, _ = io.Copy(&sent, r.Body)
		mu.Unlock()
		n.ServeHTTP(w, r)
	}))
	defer h.Close()
	p := newPerson(t, "YARDMASTER_URL="+h.URL, "YARDMASTER_TOKEN=t")
	tried := 0
	for _, c := range commands() {
		if c.Does == nil || !strings.HasSuffix(c.Args, "…") || c.Does.(*act.Act).Text == "yml" {
			continue
		}
		tried++
		args := argumentsOf(t, &c)
		at := len(strings.Fields(c.Words)) + len(c.Wants()) - 1
		args = append(append(args[:at:at], "The", "@runner", "is null."), args[at+1:]...)
		sent.Reset()
		if out, code := p.terminal(args); code != 0 {
			t.Errorf("%q: exit code %d: %s", args, code, out)
		}
		if all := sent.String(); !strings.Contains(all, `"The @runner is null."`) {
			t.Errorf("%q sends %s", args, all)
		}
	}
	if tried < 6 {
		t.Errorf("only %d commands take words", tried)
	}
}

// What an act says has no hole that its answer cannot fill.
func TestHolesAreFilled(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		if c.Does == nil {
			continue
		}
		a := c.Does.(*act.Act)
		for _, m := range act.Hole.FindAllStringSubmatch(a.Done+" "+a.Next, -1) {
			first, _, _ := strings.Cut(m[1], ".")
			given := len(c.Wants())
			if a.Made != nil { // its id comes before them
				given++
			}
			switch at, err := strconv.Atoi(first); {
			case err == nil && at < given, first == "id" && (len(c.Wants()) > 0 || a.Made != nil), first == "flags",
				first == "before" && (a.Before != "" || a.Earlier != nil):
			case capability.All()[a.Op].Output() == nil || !slices.Contains(capability.Members(capability.All()[a.Op].Output()), first):
				t.Errorf("%s: nothing fills {%s}", c.Words, m[1])
			}
		}
	}
}
