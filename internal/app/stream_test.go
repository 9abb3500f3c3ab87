package app

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// TestOpenStreamEndsWithItsCredential holds that a stream that is open when its
// token is revoked ends, with a word about why.
func TestOpenStreamEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	var minted struct{ ID, Token string }
	decode(t, y.send("POST", "/v1/tokens", y.owner, "{}").want(http.StatusCreated), &minted)
	revoked := false
	a := y.hear("/v1/streams?topics=tasks", minted.Token, nil, func(a answer) bool {
		if !revoked && bytes.Contains(a.body, []byte("event: ready")) {
			revoked = true
			y.send("DELETE", "/v1/tokens/"+minted.ID, y.owner, "").want(http.StatusOK)
		}
		return false // to its end
	})
	if !bytes.Contains(a.body, []byte("event: error")) || !bytes.Contains(a.body, []byte("problems/unauthenticated")) {
		t.Errorf("it ends with %s", a.body)
	}
}

// TestPlanIsFollowedThroughItsTasks holds that a plan is told anew when a task
// of it moves: nothing is done to the plan itself.
func TestPlanIsFollowedThroughItsTasks(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	var filed struct {
		TaskIDs []string `json:"task_ids"`
	}
	decode(t, y.send("POST", "/v1/plans/file", y.owner,
		`{"repo": "acme/web", "slug": "hello", "documents": {"overview.md": "# Say hello\n\nNobody is greeted.\n", "01-greet.md": "# Greet\n\nOne line.\n"}}`).want(http.StatusAccepted), &filed)
	cancelled := false
	a := y.hear("/v1/streams?topics=plans", y.owner, nil, func(a answer) bool {
		if !cancelled && bytes.Contains(a.body, []byte(`"topic":"plans"`)) {
			cancelled = true
			y.send("POST", "/v1/tasks/"+filed.TaskIDs[0]+"/cancel", y.owner, "").want(http.StatusOK)
		}
		return bytes.Contains(a.body, []byte(`"bucket":"stalled"`)) || bytes.Contains(a.body, []byte(`"bucket":"done"`))
	})
	if bytes.Count(a.body, []byte(`"topic":"plans"`)) < 2 || !bytes.Contains(a.body, []byte(`"bucket":"active"`)) {
		t.Errorf("heard only %s", a.body)
	}
}

var silence = db.S(`UPDATE boxes SET last_beat_at = $2 WHERE id = $1`)

// TestPresenceIsFollowed holds that who follows the boxes is told when one
// comes, falls silent, is gone, and comes again, and when it is unfit and fit.
func TestPresenceIsFollowed(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	var enrollment struct{ Token string }
	decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, "{}").want(http.StatusCreated), &enrollment)
	var c box.Credentials
	decode(t, y.send("POST", "/v1/runners/enroll", "", `{"public_key": "`+public+`", "name": "desk"}`, "X-Svc-Enroll-Token",
		enrollment.Token).want(http.StatusCreated), &c)
	conn, err := conn.Dial(c.NATSURL, c.ID, func() (string, []byte) { return c.NATSJWT, slices.Clone(seed) }, conn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := patience.Context(t)
	if err := conn.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	says := func(unfit string) func() {
		return func() {
			if err := conn.Call(ctx, protocol.CallBeat, protocol.Presence{State: "ready", Slots: 1, Free: 1, Unfit: unfit},
				nil); err != nil {
				t.Error(err)
			}
		}
	}
	beat := says("")
	quiet := func(d time.Duration) func() {
		return func() {
			y.in(y.acct, func(tx *db.Tx) error { _, err := silence.Exec(tx, c.ID, tx.Now.Add(-d)); return err })
		}
	}
	// Each step follows once the row is as the step before says.
	is := func(status string, then func()) seen { return seen{`"presence":{"status":"` + status + `"`, then} }
	steps := []seen{is("offline", beat), is("online", quiet(time.Minute)), is("stale", beat), is("online", quiet(time.Minute)),
		is("stale", quiet(2*time.Minute)), is("offline", beat), is("online", says("No room.")), {`"unfit":"No room."`, beat},
		{`"unfit":null`, nil}}
	y.followRunners(steps)
}

// seen is what a frame of the runners says, and what is done once it has come.
type seen struct {
	says string
	then func()
}

// followRunners holds that the runners' stream says one thing after the other.
func (y *yard) followRunners(steps []seen) {
	y.t.Helper()
	read, step := 0, 0
	a := y.hear("/v1/streams?topics=runners", y.owner, nil, func(a answer) bool {
		for step < len(steps) {
			at := bytes.Index(a.body[read:], []byte(steps[step].says))
			if at < 0 {
				return false
			}
			read += at + len(steps[step].says)
			if steps[step].then != nil {
				steps[step].then()
			}
			step++
		}
		return true
	})
	if step < len(steps) {
		y.t.Errorf("no patch says %s, step %d: %s", steps[step].says, step, a.body)
	}
}

// TestRunsOfABoxAreFollowed holds that who follows the boxes sees a run begin
// and end, though the box says nothing.
func TestRunsOfABoxAreFollowed(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(http.StatusCreated)
	const quiet = "quiet-box"
	y.in(y.acct, func(tx *db.Tx) error {
		_, err := walkBox.Exec(tx, quiet, y.acct)
		return err
	})
	var filed struct {
		ID string `json:"task_id"`
	}
	y.followRunners([]seen{
		{`"active":0,`, func() {
			decode(t, y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/web", "title": "t", "problem": "Something is wrong."}`).want(http.StatusAccepted), &filed)
			if reply, err := y.parts.run.Claim(t.Context(), quiet, protocol.Claim{ID: "c", Free: 1}); err != nil || reply.Run == nil {
				t.Errorf("%+v, %v", reply, err)
			}
		}},
		{`"active":1,`, func() { y.send("POST", "/v1/tasks/"+filed.ID+"/cancel", y.owner, "").want(http.StatusOK) }},
		{`"active":0,`, nil},
	})
}
