package pull

import (
	"context"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// unsure is a code host in which several commits begin with any digits.
type unsure struct{ codehost.Host }

func (unsure) Commit(context.Context, codehost.Repo, string) (string, error) {
	return "", codehost.ErrAmbiguous
}

// since_sha may be the first digits of a commit, as people are shown them.
func TestDiffSinceTheFirstDigits(t *testing.T) {
	t.Parallel()
	y := open(t, db.SQLite)
	before := y.commit("svc/a", "one", "1\n")
	pr := y.propose("svc/a", before)
	sha := y.commit("svc/a", "two", "2\n")
	y.moved("svc/a", sha)
	for _, digits := range []string{before[:7], before[:10], before} {
		var d Diff
		y.call(200, "GET", "/v1/prs/"+pr+"/diff?since_sha="+digits, "", &d)
		if d.FromSHA != before || d.HeadSHA != sha || len(d.Files) != 1 || d.Files[0].Path != "two" {
			t.Errorf("since %s: %+v", digits, d)
		}
	}
	wrong := func(digits, says string) {
		t.Helper()
		code, text := y.answer("acme", "GET", "/v1/prs/"+pr+"/diff?since_sha="+digits, "")
		if code != 400 || !strings.Contains(string(text), `"since_sha":["`+says) {
			t.Errorf("since %s: %d %s", digits, code, text)
		}
	}
	wrong(before[:6], "")
	wrong("main", "")
	wrong("0000000", "is the beginning of no commit")
	y.Hosts = served(unsure{y.host})
	wrong(before[:7], "is the beginning of several commits")
}
