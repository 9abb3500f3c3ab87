package builtin

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
)

// twins are two objects whose SHAs begin with the same 7 digits. Each of the two
// functions makes the i-th candidate for one of them.
func twins(t *testing.T, kinds [2]string, texts [2]func(i int) string) (digits string, out [2]string) {
	t.Helper()
	seen := [2]map[string]string{{}, {}}
	for i := range 1 << 20 {
		for k, kind := range kinds {
			text := texts[k](i)
			digits := fmt.Sprintf("%x", sha1.Sum([]byte(fmt.Sprintf("%s %d\x00%s", kind, len(text), text))))[:7]
			if other, ok := seen[1-k][digits]; ok {
				out[k], out[1-k] = text, other
				return digits, out
			}
			seen[k][digits] = text
		}
	}
	t.Fatal("no two begin alike")
	return "", out
}

func TestCommitByItsFirstDigits(t *testing.T) {
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	first := w.branch("main", "main", "first", "a.txt", "one\n")
	tree := w.git("rev-parse", first+"^{tree}")
	dir, err := s.open(shop)
	if err != nil {
		t.Fatal(err)
	}
	put := func(kind, text string) string {
		t.Helper()
		sha, err := dir.Filter(ctx, text, nil, "hash-object", "-w", "-t", kind, "--stdin")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(sha)
	}
	commit := func(who string) func(int) string {
		return func(i int) string {
			return fmt.Sprintf("tree %s\nauthor %s <a@example.com> %d +0000\ncommitter %[2]s <a@example.com> %d +0000\n\nx\n",
				strings.TrimSpace(tree), who, i, i)
		}
	}
	want := func(digits, sha string, refused error) {
		t.Helper()
		if got, err := s.Commit(ctx, shop, digits); got != sha || !errors.Is(err, refused) {
			t.Errorf("%q is %q, %v; want %q, %v", digits, got, err, sha, refused)
		}
	}
	for _, n := range []int{7, 10, 39, 40} {
		want(first[:n], first, nil)
	}
	for _, none := range []string{first[:6], "", "main", "HEAD", "--all", first[:7] + " ", strings.ToUpper(first[:7]) + "G",
		"0000000", tree[:12]} {
		want(none, "", codehost.ErrNotFound)
	}
	w.branch(first[:8], "main", "second", "b.txt", "two\n") // a branch with this name
	want(first[:8], first, nil)

	digits, texts := twins(t, [2]string{"commit", "commit"}, [2]func(int) string{commit("Ann"), commit("Ben")})
	ann, ben := put("commit", texts[0]), put("commit", texts[1])
	want(digits, "", codehost.ErrAmbiguous)
	want(ann, ann, nil)
	want(ben, ben, nil)

	digits, texts = twins(t, [2]string{"commit", "blob"},
		[2]func(int) string{commit("Cyd"), func(i int) string { return fmt.Sprint("file ", i) }})
	put("blob", texts[1])
	want(digits, "", codehost.ErrNotFound)
	want(digits, put("commit", texts[0]), nil)
}
