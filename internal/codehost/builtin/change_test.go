package builtin

import "testing"

// TestChange holds what keeps the change of a branch and what does not: an approval is
// carried to a new head only if the change is the same.
func TestChange(t *testing.T) {
	t.Parallel()
	// The branch changes line 10 of a.txt, and adds b.txt.
	mine := func(w work, from string) string {
		return w.branch("topic", from, "mine", "src/a.txt", lines(20, "", "", "", "", "", "", "", "", "", "", "mine"), "b.txt", "b\n")
	}
	base := func(w work, files ...string) {
		w.branch("main", "main", "base", files...)
		w.git("checkout", "-q", "topic")
	}
	merge := func(w work) { w.git("merge", "-q", "--no-edit", "main") }
	for name, c := range map[string]struct {
		to            func(w work)
		change, patch bool // whether they stay
		bases         int
	}{
		"rebased over other files": {func(w work) { base(w, "c.txt", "c\n"); w.git("rebase", "-q", "main") }, true, true, 1},
		"the base merged in":       {func(w work) { base(w, "c.txt", "c\n"); merge(w) }, true, true, 1},
		"squashed and reworded": {func(w work) {
			w.commit("more", "b.txt", "bb\n")
			w.commit("less", "b.txt", "b\n")
			w.git("reset", "-q", "--soft", "main")
			w.git("commit", "-q", "-m", "in other words")
		}, true, true, 1},
		"split and reordered": {func(w work) {
			w.git("reset", "-q", "--hard", "main")
			w.commit("second", "b.txt", "b\n")
			w.git("checkout", "-q", "origin/topic", "--", "src/a.txt")
			w.git("commit", "-q", "-m", "first")
		}, true, true, 1},
		"moved away and back": {func(w work) {
			was := w.git("rev-parse", "HEAD")
			w.commit("away", "b.txt", "other\n")
			w.git("reset", "-q", "--hard", was)
		}, true, true, 1},
		"rebased over the same file, far away": {func(w work) {
			base(w, "src/a.txt", lines(20)+"tail\n")
			w.git("rebase", "-q", "main")
		}, false, true, 1},
		"rebased over a line of the context": {func(w work) {
			base(w, "src/a.txt", lines(20, "", "", "", "", "", "", "", "near"))
			w.git("rebase", "-q", "main")
		}, false, false, 1},
		"a merge with changes of its own": {func(w work) {
			base(w, "c.txt", "c\n")
			w.git("merge", "-q", "--no-commit", "--no-ff", "main")
			w.commit("merge", "b.txt", "evil\n")
		}, false, false, 1},
		"a file renamed": {func(w work) { w.git("mv", "b.txt", "bb.txt"); w.commit("rename") }, false, false, 1},
		"white space":    {func(w work) { w.commit("blank", "b.txt", "b \n") }, false, false, 1},
		"a mode": {func(w work) {
			w.git("update-index", "--chmod=+x", "b.txt")
			w.git("commit", "-q", "-m", "mode")
		}, false, false, 1},
		"a submodule": {func(w work) {
			w.git("update-index", "--add", "--cacheinfo", "160000,"+w.git("rev-parse", "main")+",sub")
			w.git("commit", "-q", "-m", "sub")
		}, false, false, 1},
		"two merge bases": {func(w work) {
			one := w.git("rev-parse", "HEAD")
			w.git("checkout", "-q", "main")
			two := w.commit("base", "c.txt", "c\n")
			w.git("merge", "-q", "--no-edit", "--no-ff", one)
			w.git("push", "-q", "origin", "main")
			w.git("checkout", "-q", "topic")
			w.git("merge", "-q", "--no-edit", "--no-ff", two)
			w.commit("more", "d.txt", "d\n")
		}, false, false, 2},
		"no common history": {func(w work) {
			w.git("checkout", "-q", "--orphan", "orphan")
			w.commit("all")
			w.git("branch", "-f", "topic")
			w.git("checkout", "-q", "topic")
		}, false, false, 0},
		"nothing left": {func(w work) { w.git("revert", "--no-edit", "HEAD") }, false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "")
			w := start(t, s, shop)
			mine(w, "main")
			was, err := s.Compare(t.Context(), shop, "main", "topic")
			if err != nil || len(was.Change) != 64 || was.MergeBases != 1 {
				t.Fatalf("%+v, %v", was, err)
			}
			w.git("fetch", "-q", "origin")
			c.to(w)
			w.git("push", "-q", "-f", "origin", "HEAD:topic")
			is, err := s.Compare(t.Context(), shop, "main", "topic")
			if err != nil {
				t.Fatal(err)
			}
			if (is.Change == was.Change) != c.change || (is.PatchID == was.PatchID) != c.patch || is.MergeBases != c.bases {
				t.Errorf("the change stays %t, the patch id %t, with %d merge bases; want %t, %t, %d", is.Change == was.Change,
					is.PatchID == was.PatchID, is.MergeBases, c.change, c.patch, c.bases)
			}
		})
	}
}
