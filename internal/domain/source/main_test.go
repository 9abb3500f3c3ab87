package source

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// yard is two nodes with sources on one database, and what they ask of others.
type yard struct {
	t     *testing.T
	db    *db.DB
	nodes [2]*Service
	rate  *rate

	mu    sync.Mutex
	at    time.Time
	asks  map[string]*asked // by account and key
	sent  map[string]bool   // ids of events of our own
	fails error             // of File
}

type asked struct {
	id string
	n  int64
	Filing
}

// rate is a Rate for each source.
type rate struct {
	counts limit.Limiter
	most   int
}

// Take implements Rate.
func (r *rate) Take(sourceID string) (time.Duration, bool) {
	state, ok := r.counts.Take(limit.Bucket{Name: "inbound", Who: sourceID}, r.most)
	return time.Duration(state.Reset) * time.Second, ok
}

// File implements Asks.
func (y *yard) File(tx *db.Tx, f Filing) (string, bool, int64, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.fails != nil {
		return "", false, 0, y.fails
	}
	key := tx.Account + " " + f.SourceID + " " + f.Key
	a, ok := y.asks[key]
	if !ok {
		a = &asked{id: "ask-" + strconv.Itoa(len(y.asks)), Filing: f}
		y.asks[key] = a
	}
	if !ok || f.Again {
		a.n++
	}
	return a.id, ok, a.n, nil
}

// Sent implements Echoes.
func (y *yard) Sent(_ *db.Tx, eventID string) (bool, error) { return y.sent[eventID], nil }

// Made implements Echoes.
func (y *yard) Made(_ *db.Tx, kind, key string) (bool, error) { return y.sent[kind+" "+key], nil }

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.at
}

func (y *yard) wait(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.at = y.at.Add(d)
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t, at: time.Unix(1_800_000_000, 0), asks: map[string]*asked{}, sent: map[string]bool{"evt_ours": true}}
			y.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			y.rate = &rate{counts: limit.New(y.clock), most: 1_000_000}
			ring := seal.New()
			for i := range y.nodes {
				y.nodes[i] = New(Needs{
					DB: y.db, Hub: event.NewHub(), Ring: ring, Logger: slog.New(slog.DiscardHandler), BaseURL: "http://yard", Asks: y,
					Echoes: y,
					Rate:   y.rate,
				})
			}
			err := y.db.Write(t.Context(), func(tx *db.Tx) error {
				return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"},
					seed.Repo{ID: "r1", Account: "acme", Owner: "acme", Name: "web"},
					seed.Repo{ID: "r2", Account: "acme", Owner: "acme", Name: "api"},
					seed.Repo{ID: "r4", Account: "acme", Owner: "acme", Name: "old", Disabled: true},
					seed.Repo{ID: "r3", Account: "rival", Owner: "rival", Name: "web"})
			})
			if err != nil {
				t.Fatal(err)
			}
			fn(y)
		})
	}
}

// as is a context of a person of an account.
func (y *yard) as(account string, scopes ...policy.Scope) context.Context {
	ctx := policy.With(y.t.Context(), policy.Actor{Credential: policy.PAT, CredentialID: "x", UserID: "ada",
		Scopes: policy.Scopes(scopes...)})
	return db.WithAccount(ctx, account)
}

func (y *yard) connect(in connectIn) Connected {
	y.t.Helper()
	if in.Name == "" {
		in.Name = string(in.Kind)
	}
	c, err := y.nodes[0].connect(y.as("acme", policy.WriteTasks), in)
	if err != nil {
		y.t.Fatal(err)
	}
	return c
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.db.Write(y.as("acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

// texts are the headers and the path of a delivery.
type texts struct {
	source  string
	headers map[string]string
}

// Path implements op.Texts.
func (t texts) Path(string) string { return t.source }

// Header implements op.Texts.
func (t texts) Header(name string) string {
	for k, v := range t.headers {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// sending is a delivery.
type sending struct {
	node    int
	source  string
	body    string
	headers map[string]string
	length  int64 // 0: of the body
	media   string
	ip      string
	limits  limit.Limiter
}

// answer is what a delivery is answered.
type answer struct {
	status int
	text   string
	Receipt
	Type string `json:"type"`
}

func (y *yard) send(s sending) (a answer) {
	y.t.Helper()
	if s.length == 0 {
		s.length = int64(len(s.body))
	}
	if s.media == "" {
		s.media = "application/json"
	}
	row := y.nodes[s.node].Ops()[0]
	p := &op.Pipeline{BaseURL: "http://yard", Limits: s.limits}
	path := "" // which an answer names
	if s.limits != nil {
		path = "/v1/inbound/" + s.source
	}
	got := p.Do(y.t.Context(), &op.Call{Op: &row, Path: path, Request: op.Request{IP: s.ip}, Sent: op.Sent{
		Texts: texts{s.source, s.headers}, Body: strings.NewReader(s.body), Length: s.length, ContentType: s.media,
	}})
	a.status, a.text = got.Status, string(got.Body)
	if err := json.Unmarshal(got.Body, &a); err != nil {
		y.t.Fatalf("%d %s: %v", got.Status, got.Body, err)
	}
	got.Free()
	return a
}

// signed are the headers of a delivery as outbound webhooks of this server have them.
func signed(secret string, at time.Time, body string) map[string]string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return map[string]string{"X-Service-Timestamp": stamp, "X-Service-Signature": "sha256=" + mac(secret, stamp+"."+body)}
}

func mac(secret, text string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

// post sends a delivery to a generic source, signed now.
func (y *yard) post(to Connected, body string) answer {
	y.t.Helper()
	return y.send(sending{source: to.ID, body: body, headers: signed(*to.Secret, y.clock(), body)})
}

// sentry sends a delivery of Sentry.
func (y *yard) sentry(to Connected, secret, resource, body string) answer {
	y.t.Helper()
	return y.send(sending{source: to.ID, body: body, headers: map[string]string{
		"Sentry-Hook-Resource": resource, "Sentry-Hook-Signature": mac(secret, body),
	}})
}

// ledger is the ledger of a source of acme.
func (y *yard) ledger(sourceID string, perPage int) op.Page[Delivery] {
	y.t.Helper()
	in := deliveriesIn{ID: sourceID}
	in.PerPage = perPage
	page, err := y.nodes[0].deliveries(y.as("acme"), in)
	if err != nil {
		y.t.Fatal(err)
	}
	return page
}

func missing(err error) bool { return fault.IsKind(err, fault.NotFound) }
