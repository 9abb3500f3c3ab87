//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/proof/patience"
)

// What an agent leaves in its folder of artifacts is beside its task when the run is over.
func TestRunStoresArtifacts(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"keeper": `printf 'one\ntwo\n' > "$YARDMASTER_ARTIFACTS/build.log"
printf 'x\n' > src/new.txt
git add -A
git commit -qm "Add a file"
echo Done. > "$YARDMASTER_REPORT"
`})
	task := s.task("keeper", "Keep the log")
	s.pull(task)
	var all struct {
		Data []struct{ Name, Visibility string }
	}
	patience.Until(s.T, "the log is stored", func() bool {
		s.into(&all, 200, "GET", "/v1/artifacts?filter=task_id:"+task, "")
		return len(all.Data) == 1
	})
	if a := all.Data[0]; a.Name != "build.log" || a.Visibility != "run" {
		t.Errorf("it is %+v", a)
	}
	b := s.enter(1440, 900)
	b.Go("/ui/tasks/" + task)
	b.Button("what it stored")
	first(b, "artifacts")
	heads(b, "build.log")
	b.See("two")
	clean(t, b)
}
