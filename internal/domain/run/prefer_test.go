package run

import (
	"context"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

// TestPreferenceOfARun: it holds for work that its person alone asked for, is kept with the
// run, and is no say in who judges.
func TestPreferenceOfARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ann := "ann-" + f.account
		f.others.prefers = map[string]Preferred{ann: {"anthropic", "best"}}
		f.write(func(tx *db.Tx) error { return seed.Add(tx, seed.User{ID: ann}) })
		for _, x := range []struct {
			name    string
			kind    string
			unbound bool
			by      *string
			want    string
		}{
			{"one's own work", task.KindWork, false, &ann, "best"},
			{"a scout", task.KindScout, false, &ann, "best"},
			{"a repair", task.KindBabysit, false, &ann, "best"},
			{"a review of it", task.KindReview, false, &ann, "m"},
			{"somebody else had a part", task.KindWork, true, &ann, "m"},
			{"work that nobody asked for", task.KindWork, false, nil, "m"},
		} {
			name := x.name
			f.write(func(tx *db.Tx) error {
				_, err := f.Tasks.Create(tx, task.Repo{ID: f.account}, task.Spec{Kind: x.kind, Sink: task.SinkQueued, Title: name,
					Problem: "It is broken.", Template: "default", Checkout: "c0ffee", RequestedBy: x.by, Unbound: x.unbound})
				return err
			})
			c := protocol.Claim{ID: name, Free: 1}
			first, err := f.Claim(context.Background(), f.boxes[0], c)
			if err != nil || first.Run == nil || first.Run.Model != x.want {
				t.Fatalf("%s: %+v %v", name, first.Run, err)
			}
			again, err := f.Claim(context.Background(), f.boxes[0], c)
			if err != nil || again.Run == nil || again.Run.Model != x.want {
				t.Fatalf("%s again: %+v %v", name, again.Run, err)
			}
			want := Preferred{}
			if x.want == "best" {
				want = f.others.prefers[ann]
			}
			a, ok, err := f.ResolveToken(context.Background(), again.Run.ModelToken, TokenModel)
			if err != nil || !ok || a.Preferred != want || a.Model != x.want {
				t.Errorf("%s: the token is of %+v, %v, %v", name, a, ok, err)
			}
			f.mustSay(f.boxes[0], again.Run, 1, finished(protocol.Finished{State: protocol.Failed}))
		}
	})
}
