package transcript

import "testing"

// TestPatterns holds that patterns match, and that they refuse other text.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, got string
		like         bool
	}{
		{`{"a": 1}`, `{"a": 1, "b": 2}`, true},
		{`{"a": 1, "c": null}`, `{"a": 1, "b": 2}`, false},
		{`{"a": null}`, `{"a": 0}`, false},
		{`{"a": "*"}`, `{"a": null}`, true},
		{`{"a": "*"}`, `{}`, false},
		{`[]`, `[1]`, false},
		{`["..."]`, `[1]`, true},
		{`[1, 2, "..."]`, `[1]`, false},
		{`["<x>", "<x>"]`, `["a", "a"]`, true},
		{`["<x>", "<x>"]`, `["a", "b"]`, false},
		{`["<known>"]`, `["yes"]`, true},
		{`["<known>"]`, `["no"]`, false},
		{`["a*c"]`, `["abbc"]`, true},
		{`["a*c"]`, `["abcd"]`, false},
		{`["a.c"]`, `["abc"]`, false},
		{`"1"`, `1`, false},
	} {
		err := values{"known": "yes"}.matchJSON(c.pattern, []byte(c.got))
		if (err == nil) != c.like {
			t.Errorf("%s against %s: %v", c.got, c.pattern, err)
		}
	}
	v := values{}
	if err := v.match("a <x> c", "a b c"); err != nil || v["x"] != "b" {
		t.Errorf("%v, %v", v, err)
	}
}
