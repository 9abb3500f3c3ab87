package run

import (
	"testing"

	"yardmaster/internal/domain/task"
)

// TestOwnerOf: work is a person's own while nobody else had a part in it.
func TestOwnerOf(t *testing.T) {
	t.Parallel()
	ann := "ann"
	for _, x := range []struct {
		row  task.Row
		want string
	}{
		{task.Row{}, ""}, {task.Row{RequestedBy: &ann}, ann}, {task.Row{RequestedBy: &ann, Unbound: true}, ""},
	} {
		if got := ownerOf(&x.row); got != x.want {
			t.Errorf("of %v, %v: %q", x.row.RequestedBy, x.row.Unbound, got)
		}
	}
}
