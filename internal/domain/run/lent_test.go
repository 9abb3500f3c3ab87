package run

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

// TestLentBoxIsGivenNoSecrets: a box that another account has lent to a public repository takes
// its work, without the secrets of its account, and neither that of another repository nor that
// of its own account; whatever ends the gift ends its runs, and they go to another box.
func TestLentBoxIsGivenNoSecrets(t *testing.T) {
	t.Parallel()
	ends := []struct {
		how string
		end func(tx *db.Tx, box, here string) error
	}{
		{"it is taken back", func(tx *db.Tx, box, _ string) error { _, err := seed.TakeBoxBack.Exec(tx, box); return err }},
		{"the repository becomes private", func(tx *db.Tx, _, here string) error {
			_, err := seed.SetPrivate.Exec(tx, here, true)
			return err
		}},
		{"the repository takes no gifts", func(tx *db.Tx, _, here string) error {
			_, err := seed.SetConsent.Exec(tx, here, false, true)
			return err
		}},
		{"the account lets nobody in", func(tx *db.Tx, _, here string) error { _, err := seed.LetIn.Exec(tx, here, false); return err }},
	}
	each(t, func(t *testing.T, first *fixture) {
		first.t = t
		first.others.vault = func(*db.Tx, string) ([]protocol.Secret, error) {
			return []protocol.Secret{{Name: "A", Delivery: protocol.DeliverEnv, Value: []byte("CANARY")}}, nil
		}
		for _, x := range ends {
			f, g := first.tenant(), first.tenant() // f receives, and g gives
			ctx, box := t.Context(), g.boxes[0]
			key := f.newSealKey(box)
			home := g.create(task.KindWork)
			made := f.create(task.KindWork)
			f.write(func(tx *db.Tx) error {
				_, err := seed.LendBox.Exec(tx, g.account, f.account, box)
				return err
			})
			if st := f.claim(box); st != nil {
				t.Fatalf("%s: it is given work of a private repository, or of its own account: %s", x.how, st.Repo)
			}
			f.write(func(tx *db.Tx) error { _, err := seed.SetPrivate.Exec(tx, f.account, false); return err })
			f.write(func(tx *db.Tx) error { _, err := seed.SetConsent.Exec(tx, f.account, true, false); return err })
			if st := f.claim(box); st != nil {
				t.Fatalf("%s: it is given work of an account that lets nobody in", x.how)
			}
			f.write(func(tx *db.Tx) error { _, err := seed.LetIn.Exec(tx, f.account, true); return err })
			f.write(func(tx *db.Tx) error {
				_, err := seed.SetLevels.Exec(tx, box, `["landlock"]`, `{"landlock":["files","processes","unix_sockets","network"]}`)
				return err
			})
			st := f.claim(box)
			if st == nil || st.Task != made {
				t.Fatalf("%s: it is given %+v, want the task %s", x.how, st, made)
			}
			row := f.run(box, st.Run)
			if r := row.right(); r == nil || r.Kind != "gift" {
				t.Errorf("%s: on record by what right: %+v", x.how, r)
			}
			ask := protocol.SecretsAsk{Run: st.Run, Attempt: 1}
			got, err := f.Secrets(ctx, box, ask)
			if err != nil {
				t.Fatal(x.how, err)
			}
			if text, err := key.Open(protocol.SecretsPurpose(st.Run), got.Sealed); err != nil || string(text) != "[]" {
				t.Errorf("%s: it is given the secrets %s, %v", x.how, text, err)
			}
			if !f.live(st.ModelToken, TokenModel) || !f.live(st.GitToken, TokenGit) {
				t.Errorf("%s: its tokens are dead", x.how)
			}

			f.write(func(tx *db.Tx) error { return x.end(tx, box, f.account) })
			if f.live(st.ModelToken, TokenModel) || f.live(st.GitToken, TokenGit) {
				t.Errorf("%s: its tokens are good still", x.how)
			}
			if _, err := f.Secrets(ctx, box, ask); !fault.IsKind(err, fault.NotFound) {
				t.Errorf("%s: %v", x.how, err)
			}
			f.scan()
			if got := f.task(made); got.Status != task.Pending {
				t.Errorf("%s: the task is %s", x.how, got.Status)
			}
			if other := f.claim(f.boxes[0]); other == nil || other.Task != made {
				t.Errorf("%s: the account's own box gets %+v", x.how, other)
			}
			if back := g.claim(box); (back != nil && back.Task == home) != (x.how == "it is taken back") {
				t.Errorf("%s: at home the box gets %+v", x.how, back)
			}
		}
	})
}

// TestLentBoxDrivesNothingOfAPerson: work in which a box that another account has lent has a part
// goes without the token and the keys of whoever asked for it, from the claim on and for good: at
// that box, at the account's own afterwards, and in tasks about what it made. The account's own
// box has them for all else.
func TestLentBoxDrivesNothingOfAPerson(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, first *fixture) {
		first.t = t
		f, g := first, first.tenant()
		ann, box := "ann-"+f.account, g.boxes[0]
		f.others.prefers = map[string]Preferred{ann: {"anthropic", "best"}}
		f.newSealKey(box)
		f.write(func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.User{ID: ann}); err != nil {
				return err
			}
			for _, s := range []func() error{
				func() error { _, err := seed.LendBox.Exec(tx, g.account, f.account, box); return err },
				func() error { _, err := seed.SetPrivate.Exec(tx, f.account, false); return err },
				func() error { _, err := seed.SetConsent.Exec(tx, f.account, true, false); return err },
				func() error { _, err := seed.LetIn.Exec(tx, f.account, true); return err },
				func() error {
					_, err := seed.SetLevels.Exec(tx, box, `["landlock"]`, `{"landlock":["files","processes","unix_sockets","network"]}`)
					return err
				},
			} {
				if err := s(); err != nil {
					return err
				}
			}
			return nil
		})
		ask := func(title string) {
			f.write(func(tx *db.Tx) error {
				_, err := f.Tasks.Create(tx, task.Repo{ID: f.account}, task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: title,
					Problem: "It is broken.", Template: "default", RequestedBy: &ann})
				return err
			})
		}
		claimed := func(what, at string, hers bool) *protocol.Start {
			t.Helper()
			c := protocol.Claim{ID: what, Free: 1}
			var st *protocol.Start
			for _, again := range []string{"", " again"} {
				reply, err := f.Claim(t.Context(), at, c)
				if st = reply.Run; err != nil || st == nil {
					t.Fatalf("%s%s: %+v %v", what, again, reply, err)
				}
				a, ok, err := f.ResolveToken(t.Context(), st.GitToken, TokenGit)
				if err != nil || !ok || a.Unbound == hers || (a.Preferred.Model == "best") != hers || (st.Model == "best") != hers {
					t.Errorf("%s%s: it goes by %+v with the model %s (%v %v)", what, again, a, st.Model, ok, err)
				}
			}
			return st
		}
		ask("lent")
		st := claimed("at the lent box", box, false)
		f.mustSay(box, st, 1, finished(protocol.Finished{State: protocol.Failed, Kind: task.BoxDrained}))
		claimed("afterwards at the account's own", f.boxes[0], false)
		ask("own")
		claimed("another one at the account's own", f.boxes[1], true)
		f.others.ofLent = true
		ask("about it")
		claimed("about what it made", f.boxes[1], false)
	})
}
