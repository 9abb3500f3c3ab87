package inquiry

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"yardmaster/internal/db/dbtest"
)

// tally is what became of the claims of the sixty questions.
type tally struct{ right, rightDropped, wrong, wrongKept, unanswered int }

// Sixty questions about three repositories, with what the model claims: docs/questions.md says what
// becomes of them. The claims were written before the rules saw them. Who changes a rule sees here
// what it costs, and says so there.
func TestSixtyQuestions(t *testing.T) {
	t.Parallel()
	var got tally
	asked := 0
	for _, name := range []string{"ferry", "lantern", "orchard"} {
		files, lines := fixture(t, name)
		y := newYard(t, dbtest.SQLite(t), files, nil)
		for _, line := range lines {
			asked++
			y.put(t, &got, files, strings.Split(line, "\t"))
		}
	}
	want := tally{right: 30, rightDropped: 3, wrong: 24, wrongKept: 6, unanswered: 6}
	if asked != 60 || got != want {
		t.Errorf("%d questions came to %+v, want %+v", asked, got, want)
	}
}

// fixture is a repository, and the questions about it.
func fixture(t *testing.T, name string) (files map[string]string, questions []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sixty", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, f := range txtar.Parse(text).Files {
		files[f.Name] = string(f.Data)
	}
	questions = strings.Split(strings.TrimSuffix(files["questions"], "\n"), "\n")
	delete(files, "questions")
	return files, questions
}

// put asks a question, and counts what became of the claim.
func (y *yard) put(t *testing.T, sum *tally, files map[string]string, q []string) {
	t.Helper()
	kind, question := q[0], q[1]
	if kind == "none" {
		y.model.say = always(`{"claims":[]}`)
		if a := y.ask(question); a.Refused && slices.Contains([]NoAnswer{noAnswer, nothingFound}, *a.Code) {
			sum.unanswered++
		}
		return
	}
	from := slices.IndexFunc(strings.Split(files[q[3]], "\n"), func(l string) bool { return strings.Contains(l, q[4]) })
	most, err := strconv.Atoi(q[5])
	if from < 0 || err != nil {
		t.Fatalf("%q: no line of %s has %q", question, q[3], q[4])
	}
	y.model.say = always(claim(q[2], q[3]+":"+strconv.Itoa(from+1)+"-"+strconv.Itoa(from+most)))
	a := y.ask(question)
	if a.Refused && *a.Code != notBorneOut {
		t.Fatalf("%q: %s", question, *a.Code)
	}
	switch kind {
	case "right":
		if sum.right++; a.Refused {
			sum.rightDropped++
			t.Logf("right, and dropped: %s", q[2])
		}
	case "wrong":
		if sum.wrong++; !a.Refused {
			sum.wrongKept++
			t.Logf("wrong, and kept: %s", q[2])
		}
	}
}
