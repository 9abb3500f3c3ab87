package box

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/bus"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	countAudit = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE object = $1 AND kind = $2`)
	auditActor = db.Q[string](`SELECT actor FROM audit WHERE object = $1 AND kind = $2`)
	countBoxes = db.Q[int64](`SELECT COUNT(*) FROM boxes WHERE account_id = $1`)
	unfitForIs = db.Q[string](`SELECT COALESCE(unfit_for, '') FROM boxes WHERE id = $1`)
	backdate   = db.S(`UPDATE boxes SET last_beat_at = $2 WHERE id = $1`)
	expireSoon = db.S(`UPDATE boxes SET token_expires_at = $2 WHERE id = $1`)
	deleteKeys = db.S(`DELETE FROM revoked_keys WHERE box_id = $1`)
	deleteBox  = db.S(`DELETE FROM boxes WHERE id = $1`)
	// expireRevoked is the month after a revocation.
	expireRevoked = db.S(`UPDATE revoked_tokens SET expires_at = 1`)
	expireAll     = db.S(`UPDATE enrollments SET expires_at = 0`)
	liveRuns      = db.Q[string](`SELECT box_id FROM runs WHERE ended_at IS NULL AND ($1 = '' OR account_id = $1)`)
	countOwed     = db.Q[int64](`SELECT COUNT(*) FROM box_commands WHERE box_id = $1`)
)

// fixture serves the package's rows over HTTP, with a real database and, unless
// the test wants none, a real bus.
type fixture struct {
	*Service
	t    *testing.T
	http http.Handler
	bus  *bus.Bus
	runs runs
}

// runs answers for the runs in the database, all of which go on.
type runs struct {
	evacuated []string // boxes that were relieved of their work, as "why box"
	takenBack []string
	dismissed int
}

func (*runs) Active(tx *db.Tx, _ []string, of string) (map[string]int, error) {
	rows, err := liveRuns.All(tx, of)
	out := map[string]int{}
	for _, boxID := range rows {
		out[boxID]++
	}
	return out, err
}

func (r *runs) Drained(_ *db.Tx, boxID string) (int, error) { return r.evacuate("drained " + boxID) }
func (r *runs) Revoked(_ *db.Tx, boxID string) (int, error) { return r.evacuate("revoked " + boxID) }

func (r *runs) TakeBack(_ *db.Tx, boxID string) error {
	r.takenBack = append(r.takenBack, boxID)
	return nil
}

func (r *runs) evacuate(what string) (int, error) {
	r.evacuated = append(r.evacuated, what)
	return 2, nil
}

func (*runs) Verdicts(_ context.Context, _ string, held []protocol.RunRef) (out []protocol.RunVerdict, _ error) {
	for _, r := range held {
		out = append(out, protocol.RunVerdict{Run: r.Run, Attempt: r.Attempt, Do: protocol.DoContinue, FromSeq: r.Seq + 1})
	}
	return out, nil
}

func (r *runs) Dismiss(string) { r.dismissed++ }

func onBoth(t *testing.T, withBus bool, fn func(*testing.T, *fixture)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) { fn(t, newFixture(t, d, withBus)) })
}

func newFixture(t *testing.T, d *db.DB, withBus bool) *fixture {
	f := &fixture{t: t}
	f.Service = New(Needs{DB: d, Hub: event.NewHub(), Logger: slog.New(slog.DiscardHandler), Runs: &f.runs})
	if withBus {
		keys, err := bus.NewKeys()
		if err != nil {
			t.Fatal(err)
		}
		f.bus, err = bus.Start(t.Context(), bus.Config{Keys: keys,
			Owner: func(ctx context.Context, account string) (boxID string, ok bool, err error) {
				err = d.Read(ctx, func(tx *db.Tx) error {
					boxID, ok, err = Owner(tx, account)
					return err
				})
				return boxID, ok, err
			}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience.Of(t))
			defer cancel()
			if err := f.bus.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		f.Bus = f.bus
	}
	f.write(func(tx *db.Tx) error {
		return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.User{ID: "ann"},
			seed.Member{Account: "acme", User: "ann", Role: string(policy.Admin)})
	})
	f.http = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
		BaseURL: "http://127.0.0.1:8080",
		// X-Caller is account, account/scope, or account@user with token or a fresh, stale or bound session.
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			caller, as, named := strings.Cut(p.Account, "@")
			account, scope, _ := strings.Cut(caller, "/")
			if account == "" {
				return policy.Actor{}, nil
			}
			scopes := policy.Scopes(policy.ReadRunners, policy.WriteRunners)
			if scope != "" {
				scopes |= policy.Scopes(policy.Scope(scope))
			}
			a := policy.Actor{Credential: policy.PAT, CredentialID: "pat", UserID: "ann", AccountID: account, Scopes: scopes}
			if named {
				who, how, _ := strings.Cut(as, " ")
				a.UserID, a.Scopes = who, scopes|policy.Scopes(policy.SelfKeys)
				if how != "token" {
					a.Credential, a.SignedInAt, a.Bound = policy.Session, time.Now(), how == "bound"
				}
				if how == "stale" {
					a.SignedInAt = time.Now().Add(-61 * time.Minute)
				}
			}
			return a, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, f.Ops())
	return f
}

func (f *fixture) write(fn func(*db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// read runs a query that answers one value.
func read[T any](f *fixture, q db.Query[T], args ...any) T {
	f.t.Helper()
	var out T
	err := f.DB.Read(f.t.Context(), func(tx *db.Tx) (err error) {
		out, err = q.One(tx, args...)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// answer is a response: its status, its body, and the slug of a problem.
type answer struct {
	status int
	body   string
	slug   string
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// call sends a request; header is pairs of name and value.
func (f *fixture) call(method, path string, in any, header ...string) answer {
	f.t.Helper()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			f.t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	req := httptest.NewRequest(method, path, body)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	f.http.ServeHTTP(rec, req)
	out := answer{status: rec.Code, body: rec.Body.String()}
	if rec.Code >= 400 {
		var p op.Problem
		out.into(f.t, &p)
		out.slug = p.Type[strings.LastIndexByte(p.Type, '/')+1:]
	}
	return out
}

// want calls as account acme and checks status and slug.
func (f *fixture) want(status int, slug, method, path string, in any, header ...string) answer {
	f.t.Helper()
	if len(header) == 0 {
		header = []string{"X-Caller", "acme"}
	}
	a := f.call(method, path, in, header...)
	if a.status != status || slug != "" && a.slug != slug {
		f.t.Fatalf("%s %s: %d %s, want %d %s; %s", method, path, a.status, a.slug, status, slug, a.body)
	}
	return a
}

func publicKey(t *testing.T) string {
	t.Helper()
	_, public := keyPair(t)
	return public
}

func keyPair(t *testing.T) (seed []byte, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if seed, err = pair.Seed(); err != nil {
		t.Fatal(err)
	}
	return seed, public
}

func (f *fixture) mint() Enrollment {
	f.t.Helper()
	var e Enrollment
	f.want(201, "", "POST", "/v1/runners/enrollments", map[string]any{}).into(f.t, &e)
	return e
}

// enrolled makes a box of account acme.
func (f *fixture) enrolled(public string) Credentials {
	f.t.Helper()
	var c Credentials
	f.want(201, "", "POST", "/v1/runners/enroll", map[string]any{"public_key": public, "name": "desk", "slots": 2, "version": "1.0.0"},
		"X-Svc-Enroll-Token", f.mint().Token).into(f.t, &c)
	return c
}

func (f *fixture) box(boxID string) Box {
	f.t.Helper()
	var b Box
	f.want(200, "", "GET", "/v1/runners/"+boxID, nil).into(f.t, &b)
	return b
}
