package box

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/id"
	_ "yardmaster/internal/proof/chance" // seeds rapid
	"yardmaster/internal/protocol"
)

// TestNoSuchBox holds that foreign, unknown and malformed ids get the same
// answer.
func TestNoSuchBox(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		own := f.enrolled(publicKey(t)).ID
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"GET", "", nil},
			{"POST", "/revoke", nil},
			{"POST", "/drain", nil},
			{"POST", "/decommission", nil},
			{"POST", "/creds/reissue", nil},
			{"PUT", "/owner", map[string]string{"target": Org}},
			{"PUT", "/prompt", map[string]any{"prompt": "be kind"}},
		} {
			foreign := f.want(404, "not-found", r.method, "/v1/runners/"+own+r.path, r.body, "X-Caller", "rival")
			for _, unknown := range []string{id.New(), "nonsense"} {
				got := f.want(404, "not-found", r.method, "/v1/runners/"+unknown+r.path, r.body)
				if a, b := detail(t, foreign), detail(t, got); a != b {
					t.Errorf("%s %s: a foreign box answers %q, an unknown one %q", r.method, r.path, a, b)
				}
			}
		}
		if b := f.box(own); b.State != Enrolled || b.Briefing != nil {
			t.Errorf("others changed the box: %+v", b)
		}
	})
}

func detail(t *testing.T, a answer) string {
	t.Helper()
	var p op.Problem
	a.into(t, &p)
	return p.Detail
}

func TestListAndVersions(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		var ids []string
		for range 3 {
			ids = append(ids, f.enrolled(publicKey(t)).ID)
		}
		slices.Reverse(ids)
		var got []string
		path := "/v1/runners?per_page=2"
		for {
			var p op.Page[Box]
			f.want(200, "", "GET", path, nil).into(t, &p)
			for _, b := range p.Data {
				got = append(got, b.ID)
			}
			if p.NextCursor == nil {
				break
			}
			path = "/v1/runners?per_page=2&cursor=" + *p.NextCursor
		}
		if !slices.Equal(got, ids) {
			t.Errorf("listed %v, want %v", got, ids)
		}
		var p op.Page[Box]
		f.want(200, "", "GET", "/v1/runners", nil, "X-Caller", "rival").into(t, &p)
		if len(p.Data) != 0 {
			t.Errorf("the rival sees %+v", p.Data)
		}
		f.want(200, "", "POST", "/v1/runners/"+ids[0]+"/decommission", nil)
		f.want(200, "", "POST", "/v1/runners/"+ids[1]+"/revoke", nil)
		f.want(200, "", "GET", "/v1/runners", nil).into(t, &p)
		if len(p.Data) != 2 {
			t.Errorf("%d boxes after one was decommissioned", len(p.Data))
		}
		f.want(200, "", "GET", "/v1/runners?filter=state:enrolled", nil).into(t, &p)
		if len(p.Data) != 1 || p.Data[0].ID != ids[2] {
			t.Errorf("enrolled: %+v", p.Data)
		}
		var v op.Page[Version]
		f.want(200, "", "GET", "/v1/runners/versions", nil).into(t, &v)
		if !slices.Equal(v.Data, []Version{{Version: "1.0.0", Boxes: 1, Online: 0}}) || v.NextCursor != nil {
			t.Errorf("versions %+v", v)
		}
	})
}

func TestDrainIsReversible(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		c := f.enrolled(publicKey(t))
		path := "/v1/runners/" + c.ID + "/drain"
		var got Drain
		f.want(200, "", "POST", path, nil).into(t, &got)
		if want := (Drain{ID: c.ID, State: Drained, Requeued: 2}); got != want {
			t.Errorf("drained an offline box: %+v, want %+v", got, want)
		}
		f.want(200, "", "POST", path, nil).into(t, &got)
		if want := (Drain{ID: c.ID, State: Drained, Requeued: 0}); got != want {
			t.Errorf("again: %+v, want %+v", got, want)
		}
		f.want(200, "", "POST", path, map[string]bool{"resume": true}).into(t, &got)
		if want := (Drain{ID: c.ID, State: Enrolled, Requeued: 0}); got != want {
			t.Errorf("resumed: %+v, want %+v", got, want)
		}
		f.write(func(tx *db.Tx) error {
			_, err := beat.Exec(tx, beatArgs{ID: c.ID, LastBeatAt: tx.Now, Version: "1.0.0"})
			return err
		})
		f.want(200, "", "POST", path, nil).into(t, &got)
		if got.State != Draining || got.Requeued != 0 {
			t.Errorf("an online box gives its work back itself: %+v", got)
		}
		if want := []string{"drained " + c.ID}; !slices.Equal(f.runs.evacuated, want) {
			t.Errorf("evacuated %v", f.runs.evacuated)
		}
		if n := read(f, countAudit, c.ID, "box.drained"); n != 2 {
			t.Errorf("%d audit rows for 2 drains", n)
		}
		f.want(200, "", "POST", "/v1/runners/"+c.ID+"/revoke", nil)
		f.want(409, "box-revoked", "POST", path, nil)
	})
}

// brokenBus fails to shut accounts.
type brokenBus struct{ Bus }

func (brokenBus) Shut(context.Context, string) error { return errors.New("out of order") }

func TestRevokeAndDecommission(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		c := f.enrolled(publicKey(t))
		f.write(func(tx *db.Tx) error {
			if boxID, ok, err := Owner(tx, *read(f, byIdentity, c.ID).NATSAccount); boxID != c.ID || !ok || err != nil {
				t.Errorf("its account is that of box %q, %v", boxID, err)
			}
			return nil
		})
		f.Bus = brokenBus{f.bus}
		var got Removal
		f.want(200, "", "POST", "/v1/runners/"+c.ID+"/decommission", nil).into(t, &got)
		if got.Status != "cascade_failed" || got.Detail == nil || got.State != Revoked || got.Requeued != 2 || got.RevokedAt == nil {
			t.Errorf("with a broken bus: %+v", got)
		}
		f.Bus = f.bus
		f.want(200, "", "POST", "/v1/runners/"+c.ID+"/decommission", nil).into(t, &got)
		if got.Status != "decommissioned" || got.Requeued != 0 {
			t.Errorf("again: %+v", got)
		}
		if n := read(f, countAudit, c.ID, "runner.decommissioned"); n != 1 {
			t.Errorf("%d audit rows", n)
		}
		if want := []string{"revoked " + c.ID}; !slices.Equal(f.runs.evacuated, want) {
			t.Errorf("evacuated %v", f.runs.evacuated)
		}
		if b := f.box(c.ID); b.State != Revoked || b.Presence.Status != Offline || b.RevokedAt == nil {
			t.Errorf("box %+v", b)
		}
		f.want(409, "box-revoked", "PUT", "/v1/runners/"+c.ID+"/owner", map[string]string{"target": Org})
		f.write(func(tx *db.Tx) error {
			if boxID, ok, err := Owner(tx, *read(f, byIdentity, c.ID).NATSAccount); ok || err != nil {
				t.Errorf("its account is still that of box %s, %v", boxID, err)
			}
			return nil
		})
	})
}

func TestSetPrompt(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		boxID := f.enrolled(publicKey(t)).ID
		path := "/v1/runners/" + boxID + "/prompt"
		briefed := func() (text string) {
			f.write(func(tx *db.Tx) (err error) {
				defer tx.About("acme")()
				text, err = Briefing(tx, boxID)
				return err
			})
			return text
		}
		long := strings.Repeat("é", 2000)
		f.want(200, "", "PUT", path, map[string]any{"prompt": long})
		if briefed() != long {
			t.Error("the briefing is not what was set")
		}
		f.want(400, "invalid", "PUT", path, map[string]any{"prompt": long + "é"})
		f.want(400, "invalid", "PUT", path, map[string]any{})
		f.want(200, "", "PUT", path, map[string]any{"prompt": nil})
		if briefed() != "" || f.box(boxID).Briefing != nil {
			t.Error("null does not clear the briefing")
		}
	})
}

// TestSecretsStayIn holds that no answer after enrollment contains a secret.
func TestSecretsStayIn(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		c := f.enrolled(publicKey(t))
		for _, path := range []string{"/v1/runners", "/v1/runners/" + c.ID, "/v1/runners/versions"} {
			body := f.want(http.StatusOK, "", "GET", path, nil).body
			for _, secret := range []string{*c.RunToken, c.NATSJWT, "hash", "nkey"} {
				if strings.Contains(body, secret) {
					t.Errorf("%s shows %.12s…", path, secret)
				}
			}
		}
	})
}

// TestStates walks boxes through random moves beside a model of their states.
func TestStates(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.SQLite(t), true)
	rapid.Check(t, func(rt *rapid.T) {
		boxID, state, online := f.enrolled(publicKey(t)).ID, Enrolled, false
		moves := rapid.SampledFrom([]string{"drain", "resume", "ready", "drained", "revoke"})
		for _, move := range rapid.SliceOfN(moves, 1, 6).Draw(rt, "moves") {
			status := http.StatusOK
			switch move {
			case "drain", "resume":
				status = f.call("POST", "/v1/runners/"+boxID+"/drain", map[string]bool{"resume": move == "resume"}, "X-Caller",
					"acme").status
			case "revoke":
				status = f.call("POST", "/v1/runners/"+boxID+"/revoke", nil, "X-Caller", "acme").status
			default:
				if err := f.store(t.Context(), map[string]protocol.Presence{boxID: {State: move}}); err != nil {
					t.Fatal(err)
				}
			}
			want := http.StatusOK
			switch {
			case state == Revoked:
				if move == "drain" || move == "resume" {
					want = http.StatusConflict
				}
			case move == "revoke":
				state, online = Revoked, false
			case move == "resume":
				state = Enrolled
			case move == "drain" && state == Enrolled && online:
				state = Draining
			case move == "drain" && state == Enrolled:
				state = Drained
			case move == "ready":
				online = true
			case move == "drained":
				online = true
				if state == Draining {
					state = Drained
				}
			}
			b := f.box(boxID)
			if status != want || string(b.State) != state || (b.Presence.Status == Online) != online {
				rt.Fatalf("after %s: %d, %s, %s; want %d, %s, online %v", move, status, b.State, b.Presence.Status, want, state, online)
			}
		}
	})
}
