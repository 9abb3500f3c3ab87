package llm

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An accepted Gemini call has one cap, in either spelling, and a JSON parser reads
// the same one; the gateway replaces it by a lower one, and changes nothing else.
func FuzzParseGemini(f *testing.F) {
	f.Add([]byte(`{"contents":[{"parts":[{"text":"x\\\"{"}]}],"generationConfig":{"maxOutputTokens":9,"candidateCount":2}}`))
	f.Add([]byte(`{"generation_config":{"max_output_tokens":9,"topP":0.1},"x":[1,{"y":null}]}`))
	f.Add([]byte(`{"generationConfig":null}`))
	at, _ := EndpointOf("/v1beta/models/m:generateContent")
	type config struct {
		key    string
		values map[string]any
	}
	configOf := func(t *testing.T, all map[string]any) (c config, found bool) {
		for _, key := range []string{"generationConfig", "generation_config"} {
			if v, ok := all[key]; ok {
				if found {
					t.Fatalf("two configurations: %v", all)
				}
				found, c.key = true, key
				c.values, _ = v.(map[string]any)
			}
		}
		return c, found
	}
	capOf := func(t *testing.T, c config) (n any, key string) {
		for _, k := range []string{"maxOutputTokens", "max_output_tokens"} {
			if v, ok := c.values[k]; ok {
				if key != "" {
					t.Fatalf("two caps: %v", c.values)
				}
				n, key = v, k
			}
		}
		return n, key
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := parseGemini(at, body)
		if err != nil || !json.Valid(body) {
			return
		}
		var before, after map[string]any
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatal(err)
		}
		was, had := configOf(t, before)
		n, key := capOf(t, was)
		if v, ok := n.(float64); ok && int64(v) != q.MaxOutput {
			t.Fatalf("the cap is %v, read as %d", v, q.MaxOutput)
		}
		out := q.Body(Edits{Model: "another", API: Gemini, MaxOutput: 7})
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		is, _ := configOf(t, after)
		if now, _ := capOf(t, is); now != float64(7) {
			t.Fatalf("sent as %s", out)
		}
		for _, c := range []config{was, is} {
			delete(c.values, "maxOutputTokens")
			delete(c.values, "max_output_tokens")
		}
		if !had {
			delete(after, is.key)
		} else if was.values == nil { // null
			delete(before, was.key)
			delete(after, is.key)
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Fatalf("%s of %s: %s", key, body, d)
		}
	})
}
