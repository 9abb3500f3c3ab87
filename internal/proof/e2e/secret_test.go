package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/proof/chaos"
	"yardmaster/internal/protocol"
)

// spellings are the encodings in which an agent prints a secret. Base64 depends on
// the preceding bytes, so it has three forms.
func spellings(secret string) []string {
	out := []string{secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		url.QueryEscape(secret), chaos.Percent(secret)}
	for _, before := range []string{"", "k", "k="} {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(before+secret+"\n")),
			base64.RawURLEncoding.EncodeToString([]byte(before+secret)))
	}
	return out
}

// scan calls found for everything in the stack's stored data that contains one of the
// traces.
func (st *stack) scan(traces [][]byte, found func(where string)) {
	st.t.Helper()
	look := func(where string, text []byte) {
		for _, trace := range traces {
			if bytes.Contains(text, trace) {
				found(where)
				return
			}
		}
	}
	err := chaos.Scan(context.WithoutCancel(st.ctx), st.dir, st.open("server/yardmaster.db").DB, look)
	if err != nil {
		st.t.Fatal(err)
	}
}

// provider is a model provider that demands a key, and quotes the key in a refusal.
func provider(t *testing.T, key, scenario string) *httptest.Server {
	t.Helper()
	s, err := scripted.ParseScenarios([]byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New(s)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+key {
			t.Errorf("the provider was shown the key %q", got)
		}
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(w, `{"error":{"type":"rate_limit_error","message":"too many requests with the key %s"}}`, key)
			return
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		if calls.Load() < 3 {
			t.Errorf("the provider had %d calls", calls.Load())
		}
	})
	return server
}

// leaking is an agent that prints everything it can find: the environment of its
// parent, its own, and the file in which the test puts tokens that an agent might
// find elsewhere.
const leaking = `cat /proc/$PPID/environ | tr '\0' '\n' >.git/parent; while [ ! -e .git/go ]; do sleep 0.05; done; cat .git/parent .git/leak; env`

func TestSecretsAreStoredNowhere(t *testing.T) {
	st := newStack(t)
	key, ambient, marker := "sk+"+rand.Text()+"/=", "sk-ambient-"+rand.Text(), "marker+"+rand.Text()+"/="
	model := provider(t, key, "scenarios:\n  - name: leak\n    match: Talk too much\n    steps:\n      - text: I look around.\n        shell: |\n          "+
		leaking+"\n      - text: I deliver.\n        shell: |\n          "+deliver+"\n      - text: Done.\n")
	st.call(http.MethodPost, "/v1/billing/keys",
		map[string]any{"provider": "compatible", "base_url": model.URL + "/v1", "key": key, "model": "m"}, nil)
	st.template("talker", map[string]any{"agent": "builtin", "provider": "compatible", "base_url": model.URL + "/v1", "model": "m"})
	// In small pieces: no secret is in one piece.
	st.script("stutterer", leaking+` >/dev/null; dd if=.git/leak bs=5 2>/dev/null; `+deliver+`; cat .git/leak >"$YARDMASTER_REPORT"`)

	secrets := map[string]string{
		"the provider's key": key, "a key in the box's environment": ambient, "the personal access token": st.c.Token,
		"the password": password,
	}
	for name, body := range map[string]map[string]any{
		"OPEN_SECRET":   {"value": "open+" + rand.Text() + "/="},
		"CLOSED_SECRET": {"value": "closed+" + rand.Text() + "/=", "delivery": "broker", "hosts": []string{"api.example.com"}},
	} {
		st.call(http.MethodPut, "/v1/secrets/"+name, body, nil)
		secrets["the secret "+name] = body["value"].(string)
	}
	joining := st.enrollment("spare")
	secrets["an enrollment token"] = joining
	b := st.join("box", "OPENAI_API_KEY="+ambient, "ANTHROPIC_API_KEY="+ambient)
	identity, err := box.LoadIdentity(b.data)
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range []string{"talker", "stutterer"} {
		id := st.file(template, "Talk too much")
		r := st.live(id, 1)
		var start protocol.Start
		st.until("the run is on the box's disk", func() bool {
			text, err := os.ReadFile(filepath.Join(b.checkout(r), "..", "start.json"))
			return err == nil && json.Unmarshal(text, &start) == nil
		})
		mine := map[string]string{template + "'s model token": start.ModelToken, template + "'s git token": start.GitToken}
		st.until("the agent has looked around", func() bool {
			text, err := os.ReadFile(filepath.Join(b.checkout(r), ".git", "parent"))
			for line := range strings.Lines(string(text)) {
				if token, ok := strings.CutPrefix(strings.TrimSpace(line), "YARDMASTER_MODEL_TOKEN="); ok {
					mine[template+"'s token for the box's own gateway"] = token
				}
			}
			return err == nil && (template != "talker" || len(mine) == 3)
		})
		leak := strings.Join(spellings(marker), "\n") + "\n"
		for name, secret := range mine {
			if len(secret) < 20 {
				t.Fatalf("%s is %q", name, secret)
			}
			leak += strings.Join(spellings(secret), "\n") + "\n"
			secrets[name] = secret
		}
		if err := os.WriteFile(filepath.Join(b.checkout(r), ".git", "leak"), []byte(leak), 0o644); err != nil {
			t.Fatal(err)
		}
		b.release(r)
		st.merges(id)
	}
	st.verify()

	for name, secret := range secrets {
		for i, trace := range chaos.Traces(secret) {
			st.scan([][]byte{trace}, func(where string) { t.Errorf("%s is in %s, in spelling %d", name, where, i) })
		}
	}
	st.scan(chaos.Traces(identity.Seed), func(where string) {
		if filepath.Base(where) != "identity.json" {
			t.Errorf("the box's own key is in %s", where)
		}
	})
	st.scan(chaos.Traces(identity.RunToken.Value), func(where string) {
		if filepath.Base(where) != "identity.json" {
			t.Errorf("the box's own token is in %s", where)
		}
	})
	// The scan finds what is stored: the agents also printed a marker, which is no
	// secret, in the same encodings.
	for i, trace := range chaos.Traces(marker) {
		found := false
		st.scan([][]byte{trace}, func(where string) { found = found || where == "table run_events" })
		if !found {
			t.Errorf("spelling %d of what is no secret is not in the database", i)
		}
	}
}
