package run

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

// TestWhatABoxIsGivenIsAskedAnew holds that all a box is given for a run of another account
// ends with its right to it, at that moment, whichever way that ends: the claim, its answer
// once more, the lease, the hello, the tokens, the secrets. What runs goes to another box.
func TestWhatABoxIsGivenIsAskedAnew(t *testing.T) {
	t.Parallel()
	ends := map[string]func(tx *db.Tx, box, home, here string) error{
		"the owner takes it back": func(tx *db.Tx, box, _, here string) error {
			return seed.Consent{BoxID: box, AccountID: here, UserID: "ann-" + here}.Add(tx)
		},
		"the account lets nobody in": func(tx *db.Tx, _, _, here string) error { _, err := seed.LetIn.Exec(tx, here, false); return err },
		"the owner leaves the account": func(tx *db.Tx, _, _, here string) error {
			_, err := seed.DropMember.Exec(tx, here, "ann-"+here)
			return err
		},
		"the owner leaves the box's": func(tx *db.Tx, _, home, here string) error {
			_, err := seed.DropMember.Exec(tx, home, "ann-"+here)
			return err
		},
		"the box is its account's again": func(tx *db.Tx, box, _, _ string) error {
			_, err := seed.SetTarget.Exec(tx, box, "org", nil)
			return err
		},
		"the box is somebody else's": func(tx *db.Tx, box, _, _ string) error {
			bob := "bob"
			_, err := seed.SetTarget.Exec(tx, box, "user", &bob)
			return err
		},
	}
	each(t, func(t *testing.T, first *fixture) {
		first.t = t
		for how, end := range ends {
			f, g := first.tenant(), first.tenant()
			ctx, box, ann := t.Context(), g.boxes[0], "ann-"+f.account
			f.newSealKey(box)
			f.write(func(tx *db.Tx) error {
				err := seed.Add(tx, seed.User{ID: ann},
					seed.Member{Account: f.account, User: ann}, seed.Member{Account: g.account, User: ann})
				if err != nil {
					return err
				}
				_, err = seed.SetTarget.Exec(tx, box, "user", &ann)
				return err
			})
			made := f.create(task.KindWork)
			f.write(func(tx *db.Tx) error { _, err := seed.AskedBy.Exec(tx, made, ann); return err })
			claim := protocol.Claim{ID: "claim-" + f.account, Free: 1}
			give := func() (*protocol.Start, error) {
				reply, err := f.Claim(ctx, box, claim)
				return reply.Run, err
			}
			if st := f.claim(box); st != nil {
				t.Fatalf("%s: it is given work that nobody has agreed to", how)
			}
			f.write(func(tx *db.Tx) error {
				return seed.Consent{BoxID: box, AccountID: f.account, UserID: ann, AgreedAt: new(int64(5))}.Add(tx)
			})
			if st := f.claim(box); st != nil {
				t.Fatalf("%s: it is given work of an account that lets nobody in", how)
			}
			f.write(func(tx *db.Tx) error { _, err := seed.LetIn.Exec(tx, f.account, true); return err })
			st, err := give()
			if err != nil || st == nil {
				t.Fatal(how, st, err)
			}
			row := f.run(box, st.Run)
			if r := row.right(); r == nil || r.Kind != "consent" || *r.UserID != ann || r.AgreedAt == nil {
				t.Errorf("%s: on record by what right: %+v", how, r)
			}
			seq := int64(0)
			ref := protocol.RunRef{Run: st.Run, Attempt: 1}
			given := func() (n int) {
				for _, kind := range []string{TokenGit, TokenModel} {
					token := map[string]string{TokenGit: st.GitToken, TokenModel: st.ModelToken}[kind]
					if f.live(token, kind) {
						n++
					}
				}
				for _, ask := range []func() error{
					func() error {
						_, err := f.Secrets(ctx, box, protocol.SecretsAsk{Run: st.Run, Attempt: 1})
						return err
					},
					func() error {
						again, err := give()
						if err == nil && again == nil {
							err = fault.Missing("run")
						} else if err == nil {
							st = again
						}
						return err
					},
				} {
					if err := ask(); err == nil {
						n++
					} else if !fault.IsKind(err, fault.NotFound) {
						t.Error(how, err)
					}
				}
				if out, err := f.Renew(ctx, box, protocol.Renew{Run: st.Run, Attempt: 1}); err != nil || out.OK {
					n++
				}
				if ok, err := f.Transfers(ctx, st.Run); err != nil || ok {
					n++
				}
				verdicts, err := f.Verdicts(ctx, box, []protocol.RunRef{ref})
				if err != nil || len(verdicts) != 1 || verdicts[0].Do == protocol.DoContinue {
					n++
				}
				if _, err := f.GitToken(ctx, box, protocol.GitTokenAsk{Run: st.Run, Attempt: 1}); err == nil {
					n++
				}
				// What it says counts, and what is said to its agent reaches it.
				seq++
				said := ev(protocol.EventUsage, nil)
				said.Seq = seq
				words := protocol.Envelope{V: protocol.Version, Run: st.Run, Attempt: 1, Events: []protocol.Event{said}}
				out, err := f.Append(ctx, box, words)
				if err != nil || !out.Closed && out.Seq == seq {
					n++
				}
				f.write(func(tx *db.Tx) error {
					row := mustRow(t, tx, box, st.Run)
					_, queued, err := sendMessage(tx, &row, "Go on.")
					if queued {
						n++
					}
					return err
				})
				return n
			}
			if n := given(); n != 10 {
				t.Errorf("%s: with the right to all, it is given %d of 10", how, n)
			}
			f.write(func(tx *db.Tx) error { return end(tx, box, g.account, f.account) })
			if n := given(); n != 0 {
				t.Errorf("%s: it is still given %d of 10", how, n)
			}
			f.scan()
			if got := f.task(made); got.Status != task.Pending {
				t.Errorf("%s: the task is %s", how, got.Status)
			}
			if n := len(f.others.dropped); n == 0 || f.others.dropped[n-1] != box+" "+f.account {
				t.Errorf("%s: messages are deleted of %v", how, f.others.dropped)
			}
			other := f.claim(f.boxes[0])
			if other != nil {
				row = f.run(f.boxes[0], other.Run)
			}
			if other == nil || *row.BoxRight != "own" {
				t.Errorf("%s: the account's own box gets %+v", how, other)
			}
		}
	})
}

// TestNoClaimWithoutARight holds that a box that loses its right as it claims is answered as
// one for which there is no work, and that the task stays where it is.
func TestNoClaimWithoutARight(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, first *fixture) {
		first.t = t
		f, g := first, first.tenant()
		made := f.create(task.KindWork)
		f.write(func(tx *db.Tx) error {
			row, _, err := task.Get(tx, f.account, made)
			if err != nil {
				return err
			}
			start, err := f.begin(tx, &row, g.boxes[0], "claim", "")
			if start != nil || err != nil {
				t.Errorf("it is given %+v, %v", start, err)
			}
			return nil
		})
		f.wantStatus(made, task.Pending)
	})
}

func mustRow(t *testing.T, tx *db.Tx, box, run string) Row {
	t.Helper()
	r, err := selectOfBox.One(tx, box, run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
