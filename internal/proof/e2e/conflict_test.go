package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// nine lines: changes of the first and of the last one merge cleanly.
const nine = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

// shared is a stack whose tasks all change one file of its repository, and where a
// person is asked before each merge.
func shared(t *testing.T, conflicts string) *stack {
	st := newStack(t)
	st.conflicts(conflicts)
	st.push("main", map[string]string{"shared.txt": nine})
	st.join("box")
	return st
}

func (st *stack) conflicts(mode string) {
	st.t.Helper()
	st.push("main", map[string]string{".svc/policy.yml": "version: 1\nreview: {mode: off}\nmerge: {mode: ask}\nconflicts: " + mode + "\n"})
}

// change files a task that runs sed on the shared file, and declares that file.
func (st *stack) change(name, script string) string {
	st.t.Helper()
	st.script(name, `sed -i '`+script+`' shared.txt; `+deliver)
	var out struct {
		TaskID string `json:"task_id"`
	}
	st.call(http.MethodPost, "/v1/tasks",
		map[string]any{"repo": owner + "/" + repoName, "title": "Change " + name, "problem": "Change it.", "template": name,
			"files": []string{"shared.txt"}}, &out)
	return out.TaskID
}

type proposal struct {
	ID            string
	HeadSHA       string `json:"head_sha"`
	State         string
	PendingAction *struct {
		State   string
		HeadSHA string `json:"head_sha"`
	} `json:"pending_action"`
}

// proposed waits until a person is asked about the work of a task.
func (st *stack) proposed(task string) proposal {
	st.t.Helper()
	var pr proposal
	st.until("a person is asked about "+task, func() bool {
		t := st.task(task)
		if t.Ended() {
			st.t.Fatalf("the task ended as %s after %s", t.Status, st.outcomes(task))
		}
		if t.PRID == nil {
			return false
		}
		st.call(http.MethodGet, "/v1/prs/"+*t.PRID, nil, &pr)
		return pr.PendingAction != nil && pr.PendingAction.State == "pending" && pr.PendingAction.HeadSHA == pr.HeadSHA
	})
	return pr
}

func (st *stack) approve(pr proposal) {
	st.t.Helper()
	st.call(http.MethodPost, "/v1/prs/"+pr.ID+"/approve-pending", map[string]string{"head_sha": pr.HeadSHA}, nil)
}

// waitsFor waits until a task is held because of another, and checks that its hold
// names the other.
func (st *stack) waitsFor(task, other string) {
	st.t.Helper()
	st.until(task+" waits for "+other, func() bool {
		because := 0
		for _, h := range st.holds(task) {
			switch {
			case h.Reason == "conflict" && strings.Contains(h.ClearsWhen, other) && strings.Contains(h.ClearsWhen, "shared.txt"):
				because++
			case h.Reason != "waiting_person": // the reason for which the other task waits
				return false
			}
		}
		return because == 1
	})
}

func (st *stack) onMain(want string) {
	st.t.Helper()
	if got := st.git(st.bare(), "show", "main:shared.txt"); got != strings.TrimSpace(want) {
		st.t.Errorf("the shared file holds %q, want %q", got, want)
	}
}

func TestConflictingWorkWaitsForTheMerge(t *testing.T) {
	st := shared(t, "hold")
	first := st.change("first", "1s/$/ first/")
	open := st.proposed(first)
	second := st.change("second", "1s/$/ second/")
	st.waitsFor(second, first)
	st.script("aside", deliver)
	aside := st.file("aside", "Touch nothing of that")
	st.approve(st.proposed(aside))
	st.merges(aside)
	st.waitsFor(second, first) // the merge of other work changes nothing
	st.approve(open)
	st.merges(first)
	st.approve(st.proposed(second))
	st.merges(second)
	st.onMain("1 first second" + nine[1:])
	for _, id := range []string{first, second} {
		if got := st.outcomes(id); got != "succeeded" {
			t.Errorf("the tries: %s", got)
		}
	}
	st.verify()
}

// A predicted conflict is predicted again when its causes change: the other work, and
// the policy.
func TestConflictIsForeseenAnew(t *testing.T) {
	st := shared(t, "hold")
	// The agents stop half-way, with saved work that git can merge by trial.
	save := func(name, script string) (task, blocker string) {
		st.script(name, `if [ -e half ]; then rm half; `+deliver+`; exit; fi; echo half >half; sed -i '`+script+`' shared.txt
			echo '{"kind":"decision","question":"Go on?"}' >"$YARDMASTER_OUTBOX/blocker-1.json"`)
		task = st.file(name, "Change "+name)
		st.until(name+" is held", func() bool { return st.task(task).Status == "held" })
		return task, st.blocker(task).ID
	}
	clashes, ask1 := save("clashes", "1s/$/ clashes/")
	fits, ask2 := save("fits", "9s/$/ fits/")
	first := st.change("first", "1s/$/ first/")
	open := st.proposed(first)
	for _, b := range []string{ask1, ask2} {
		st.call(http.MethodPost, "/v1/blockers/"+b+"/answer", map[string]string{"answer": "Yes."}, nil)
	}
	st.waitsFor(clashes, first)
	st.approve(st.proposed(fits)) // git merges the two, though both change one file
	st.merges(fits)
	st.waitsFor(clashes, first)

	// A person removes the first line from the first work.
	st.push(st.task(first).Branch, map[string]string{"shared.txt": nine, "instead.txt": "first\n"})
	st.approve(st.proposed(clashes))
	st.merges(clashes)
	moved := st.proposed(first)
	if moved.HeadSHA == open.HeadSHA {
		t.Error("the first pull request has not moved")
	}

	// New work on the same file waits, until the policy no longer demands it.
	st.push(st.task(first).Branch, map[string]string{"shared.txt": strings.Replace(nine, "4\n", "4 first\n", 1)})
	st.until("that is known", func() bool { return st.proposed(first).HeadSHA != moved.HeadSHA })
	third := st.change("third", "5s/$/ third/")
	st.waitsFor(third, first)
	st.conflicts("ignore")
	st.approve(st.proposed(third))
	st.merges(third)
	st.onMain("1 clashes\n2\n3\n4\n5 third\n6\n7\n8\n9 fits\n")
	st.call(http.MethodPost, "/v1/tasks/"+first+"/cancel", nil, nil)
	st.until("nothing more is done for it", st.idle) // its conflict was being resolved
	st.verify()
}

func TestConflictingWorkBeginsOnTop(t *testing.T) {
	st := shared(t, "stack")
	first := st.change("first", "1s/$/ first/")
	below := st.proposed(first)
	second := st.change("second", "1s/$/ second/")
	above := st.proposed(second)
	if log := strings.Fields(st.git(st.bare(), "log", "--format=%H", "main.."+above.HeadSHA)); !slices.Contains(log, below.HeadSHA) {
		t.Errorf("the second work has the commits %v, not the first's %s", log, below.HeadSHA)
	}
	// Approved too early, it waits for the work that it builds on.
	st.approve(above)
	st.approve(st.proposed(first))
	st.merges(second)
	if s := st.task(first).Status; s != "merged" {
		t.Errorf("the second is merged while the first is %s", s)
	}
	st.onMain("1 first second" + nine[1:])
	st.verify()
}
