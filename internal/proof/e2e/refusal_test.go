package e2e

import (
	"strings"
	"testing"
)

func TestPushRefusedByTheHost(t *testing.T) {
	st := newStack(t)
	st.script("work", `echo "try" >>attempts; `+deliver)
	st.join("box")
	// A branch of this name excludes every branch svc/<anything>.
	st.git(st.bare(), "update-ref", "refs/heads/svc", "refs/heads/main")
	id := st.file("work", "Be refused")
	r := st.ends(id, 1)
	if r.Outcome != "failed" || r.FailureKind != "push_rejected" {
		t.Errorf("the first try ended as %+v", r)
	}
	task := st.task(id)
	if task.Status != "pending" || task.PRID != nil || task.FailureKind == nil || *task.FailureKind != "push_rejected" {
		t.Errorf("the task after it: %+v", task)
	}
	if len(task.Holds) == 0 || task.Holds[0].Reason == "" {
		t.Errorf("nothing says why it waits: %+v", task)
	}
	for _, e := range st.events(r) {
		if e.Kind == "git.pushed" {
			t.Errorf("the box says that it pushed: %s", e.Data)
		}
	}

	st.git(st.bare(), "update-ref", "-d", "refs/heads/svc")
	st.merges(id)
	if got := st.outcomes(id); got != "failed(push_rejected) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	if n := strings.Count(st.git(st.bare(), "show", "main:attempts"), "try"); n != 1 {
		t.Errorf("the work was done %d times over", n)
	}
	st.verify()
}
