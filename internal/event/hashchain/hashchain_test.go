package hashchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// export makes the lines of one account's first n rows, newest first.
func export(t *testing.T, account string, n int) []string {
	t.Helper()
	var lines []string
	prev := ""
	for seq := 1; seq <= n; seq++ {
		lines = append(lines, line(t, account, seq, prev, "<&> café"))
		var l Link
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &l); err != nil {
			t.Fatal(err)
		}
		prev = l.Hash
	}
	slices.Reverse(lines)
	return lines
}

func line(t *testing.T, account string, seq int, prev, data string) string {
	t.Helper()
	row := map[string]any{"id": fmt.Sprint(account, "-", seq), "account_id": account, "seq": seq, "prev_hash": prev,
		"data": map[string]any{"text": data}}
	hash, err := HashOf(row)
	if err != nil {
		t.Fatal(err)
	}
	row["hash"] = hash
	b, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func verify(lines []string) ([]Span, error) {
	return Verify(strings.NewReader(strings.Join(lines, "\n")))
}

func TestVerify(t *testing.T) {
	down := export(t, "a", 5)
	up := slices.Clone(down)
	slices.Reverse(up)
	for name, lines := range map[string][]string{"newest first": down, "oldest first": up} {
		spans, err := verify(lines)
		if err != nil || len(spans) != 1 {
			t.Fatalf("%s: %v, %v", name, spans, err)
		}
		if s := spans[0]; s.Rows != 5 || s.First.Seq != 1 || s.Head.Seq != 5 || s.AccountID != "a" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	// The oldest rows may be missing, and the spaces in the others do not matter.
	spaced := strings.ReplaceAll(down[0], `":`, `" : `)
	if spans, err := verify([]string{spaced, "", down[1]}); err != nil || spans[0].First.Seq != 4 {
		t.Errorf("a part: %+v, %v", spans, err)
	}
	other := export(t, "b", 2)
	if spans, err := verify([]string{down[0], other[0], down[1], other[1]}); err != nil || len(spans) != 2 || spans[1].Rows != 2 {
		t.Errorf("two accounts: %+v, %v", spans, err)
	}
}

// TestFirstBadRow holds that Verify names the first bad row, whatever its fault.
func TestFirstBadRow(t *testing.T) {
	var middle Link
	whole := export(t, "a", 5)
	if err := json.Unmarshal([]byte(whole[3]), &middle); err != nil { // row 2
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		do   func([]string) []string
		line int
		id   string
	}{
		"a word was changed": {func(l []string) []string { l[2] = strings.Replace(l[2], "caf", "Caf", 1); return l }, 3, "a-3"},
		"a hash was changed": {func(l []string) []string { l[4] = strings.Replace(l[4], `"hash":"`, `"hash":"0`, 1); return l }, 5,
			"a-1"},
		"a member was added":        {func(l []string) []string { l[1] = strings.Replace(l[1], "{", `{"x":1,`, 1); return l }, 2, "a-4"},
		"a member is there twice":   {func(l []string) []string { l[1] = strings.Replace(l[1], "{", `{"seq":4,`, 1); return l }, 2, ""},
		"a row was taken out":       {func(l []string) []string { return slices.Delete(l, 1, 2) }, 2, "a-3"},
		"a row was doubled":         {func(l []string) []string { return slices.Insert(l, 1, l[0]) }, 2, "a-5"},
		"two rows changed places":   {func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }, 3, "a-2"},
		"a row was written anew":    {func(l []string) []string { l[2] = line(t, "a", 3, middle.Hash, "lies"); return l }, 3, "a-3"},
		"a first row was made up":   {func(l []string) []string { l[4] = line(t, "a", 1, "", "lies"); return l }, 5, "a-1"},
		"the beginning was cut off": {func(l []string) []string { return []string{line(t, "a", 2, "", "lies")} }, 1, "a-2"},
		"no row":                    {func(l []string) []string { l[1] = "[]"; return l }, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verify(c.do(slices.Clone(whole)))
			bad, ok := errors.AsType[*Break](err)
			if !ok {
				t.Fatalf("%v", err)
			}
			if bad.Line != c.line || bad.ID != c.id || bad.Why == "" {
				t.Errorf("named: %v", bad)
			}
		})
	}
	if _, err := Verify(strings.NewReader(strings.Repeat("x", longest+1))); err == nil || errors.As(err, new(*Break)) {
		t.Errorf("a line without end: %v", err)
	}
}
