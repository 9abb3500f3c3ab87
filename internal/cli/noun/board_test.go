package noun

import "testing"

// What a widget shows is said in words, and a rate with how many it is of.
func TestBoardInWords(t *testing.T) {
	t.Parallel()
	row := func(label string) any { return map[string]any{"label": label} }
	for _, c := range []struct {
		kind string
		data map[string]any
		want string
	}{
		{"stat", map[string]any{"value": map[string]any{"n": 3.0, "d": 4.0}}, "3 of 4"},
		{"stat", map[string]any{"value": map[string]any{"n": 0.0, "d": nil}}, "0"},
		{"stat", map[string]any{"value": map[string]any{"usd": "1.50", "unpriced": 0.0}}, "1.50 USD"},
		{"stat", map[string]any{"value": map[string]any{"usd": nil, "unpriced": 2.0}}, "unknown"},
		{"series", map[string]any{"points": []any{map[string]any{"n": 1.0}, map[string]any{"n": 2.0}}}, "2 last"},
		{"feed", map[string]any{"rows": []any{row("a"), row("b"), row("c"), row("d")}}, "a, b, c, …"},
		{"table", map[string]any{"rows": []any{}}, ""},
		{"stat", map[string]any{"missing_scopes": []any{"read:usage"}, "value": nil}, "the credential lacks read:usage"},
	} {
		board := map[string]any{"widgets": []any{map[string]any{"id": "w", "title": nil, "source": "s", "kind": c.kind, "data": c.data}}}
		plainBoard(board)
		w := board["widgets"].([]any)[0].(map[string]any)
		if w["shows"] != c.want || w["title"] != "s" || w["data"] != nil {
			t.Errorf("%s shows %+v, want %q", c.kind, w, c.want)
		}
	}
}
