package oauth

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

const (
	base     = "http://yard.example"
	callback = "http://127.0.0.1:7777/cb"
	// verifier and challenge are the pair of RFC 7636, appendix B.
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

var (
	liveTokens    = db.Q[string](`SELECT scopes FROM tokens WHERE revoked_at IS NULL ORDER BY created_at`)
	audited       = db.Q[struct{ Actor, Kind string }](`SELECT actor, kind FROM audit WHERE account_id = $1 ORDER BY at, id`)
	tokenAccounts = db.Q[string](`SELECT account_id FROM tokens ORDER BY created_at`)
	countCodes    = db.Q[int64](`SELECT COUNT(*) FROM oauth_codes`)
)

// yard is the service with ada, who is a member of acme and rival, and with a clock
// that the test sets. A session is the header "X-Session: NAME ACCOUNT SCOPE…".
type yard struct {
	*Service
	t       *testing.T
	http    http.Handler
	client  string // a client_id
	mu      sync.Mutex
	now     time.Time
	dropped int
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) pass(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			ring, err := seal.Parse(strings.Repeat("0a", 32))
			if err != nil {
				t.Fatal(err)
			}
			y := &yard{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			y.Service = service(d, ring)
			event.CredentialDropped.On(d, func(tx *db.Tx, _ string) error {
				tx.AfterCommit(func() {
					y.mu.Lock()
					defer y.mu.Unlock()
					y.dropped++
				})
				return nil
			})
			y.http = rest.Handler(rest.Config{Page: web.Failure, AccountHeader: "X-Session", Pipeline: &op.Pipeline{
				BaseURL: base, Authenticate: session,
				Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
			}}, y.Ops())
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.User{ID: "ada"}); err != nil {
					return err
				}
				for _, account := range []string{"acme", "rival"} {
					if err := seed.Add(tx, seed.Account{ID: account}); err != nil {
						return err
					}
					if err := seed.Add(tx, seed.Member{Account: account, User: "ada", Role: "owner"}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var made ClientRegistration
			y.call(answer{201, &made}, "POST", "/oauth/register", "",
				`{"client_name": "Editor", "redirect_uris": ["http://127.0.0.1/cb", "https://editor.example/cb"]}`)
			y.client = made.ClientID
			fn(t, y)
		})
	}
}

func session(_ context.Context, p op.Presented) (policy.Actor, error) {
	words := strings.Fields(p.Account)
	if len(words) < 2 {
		return policy.Actor{}, nil
	}
	scopes, _ := policy.ParseScopes(words[2:])
	return policy.Actor{Credential: policy.Session, CredentialID: words[0], UserID: "ada", AccountID: words[1], Scopes: scopes}, nil
}

// service returns a Service on d that gives every scope to programs.
func service(d *db.DB, ring *seal.Keyring) *Service {
	return New(Needs{
		DB: d, Ring: ring, Clients: ring, Sessions: adas{}, Used: func() policy.Set { return ^policy.Set(0) },
		Tokens: token.New(token.Needs{DB: d}),
	})
}

// adas are the sessions of ada.
type adas struct{}

// Within returns an actor with read:tasks in rival, with every scope in acme, and
// with none elsewhere.
func (adas) Within(_ *db.Tx, a policy.Actor, account string) (policy.Actor, error) {
	a.AccountID = account
	switch account {
	case "acme":
		a.Scopes = ^policy.Set(0)
	case "rival":
		a.Scopes = policy.Scopes(policy.ReadTasks)
	default:
		a.Scopes = 0
	}
	return a, nil
}

// owner is a session with every scope, so that a test fails if a scope of operator
// tokens is passed on.
var owner = "s1 acme " + strings.Join((^policy.Set(0)).Names(), " ")

type answer struct {
	status int
	into   any
}

// call sends a request and decodes the answer. Bodies are JSON or forms.
func (y *yard) call(want answer, method, target, session, body string) *httptest.ResponseRecorder {
	y.t.Helper()
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	if strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/json")
	} else if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", base)
	}
	req.Header.Set("X-Session", session)
	rec := httptest.NewRecorder()
	y.http.ServeHTTP(rec, req)
	if want.status != 0 && rec.Code != want.status {
		y.t.Fatalf("%s %s %s: %d, want %d: %s", method, target, body, rec.Code, want.status, rec.Body)
	}
	if want.into != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), want.into); err != nil {
			y.t.Fatalf("%s %s: %v: %s", method, target, err, rec.Body)
		}
	}
	return rec
}

// refused calls and compares the answer with the members that RFC 6749 and RFC 9457
// require of failures.
func (y *yard) refused(code, method, target, session, body string) {
	y.t.Helper()
	var p struct {
		Type        string
		Status      int
		Detail      string
		Error       string
		Description string `json:"error_description"`
	}
	rec := y.call(answer{400, &p}, method, target, session, body)
	if rec.Header().Get("Content-Type") != "application/problem+json" || rec.Header().Get("Cache-Control") != "no-store" {
		y.t.Errorf("%s %s: headers %v", method, target, rec.Header())
	}
	slug := p.Type[strings.LastIndex(p.Type, "/")+1:]
	if p.Error != code && slug != code || p.Error == "" || p.Description != p.Detail || p.Status != 400 {
		y.t.Errorf("%s %s %s: want %s: %s", method, target, body, code, rec.Body)
	}
}

// request returns a correct authorization request, changed by pairs of name and
// value.
func (y *yard) request(change ...string) string {
	q := url.Values{
		"response_type":         {"code"},
		"client_id":             {y.client},
		"redirect_uri":          {callback},
		"scope":                 {"read:tasks write:tasks"},
		"state":                 {"s&1"},
		"code_challenge":        {challenge},
		"code_challenge_method": {"S256"},
	}
	set(q, change)
	return authorizePath + "?" + q.Encode()
}

func set(q url.Values, change []string) {
	for i := 0; i+1 < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
}

var ticketField = regexp.MustCompile(`name="ticket" value="([^"]*)"`)

// shown opens a page that asks for a decision and returns its ticket.
func (y *yard) shown(target, session string) (ticket string) {
	y.t.Helper()
	rec := y.call(answer{200, nil}, "GET", target, session, "")
	found := ticketField.FindStringSubmatch(rec.Body.String())
	if found == nil {
		y.t.Fatalf("no ticket in %s", rec.Body)
	}
	return html.UnescapeString(found[1])
}

// decision returns the form of such a page with a button pressed.
func decision(ticket, word string) string {
	return url.Values{"ticket": {ticket}, "decision": {word}}.Encode()
}

// heard returns the query that the client receives at its address.
func (y *yard) heard(rec *httptest.ResponseRecorder) url.Values {
	y.t.Helper()
	at, err := url.Parse(rec.Header().Get("Location"))
	if err != nil || rec.Code != 303 || !strings.HasPrefix(at.String(), callback+"?") {
		y.t.Fatalf("%d, to %q: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
	}
	return at.Query()
}

// code returns a code that the owner has just allowed.
func (y *yard) code(change ...string) string {
	y.t.Helper()
	q := y.heard(y.call(answer{303, nil}, "POST", authorizePath, owner, decision(y.shown(y.request(change...), owner), "authorize")))
	if q.Get("code") == "" {
		y.t.Fatalf("the client hears %v", q)
	}
	return q.Get("code")
}

// exchange returns a correct token request, changed by pairs of name and value.
func (y *yard) exchange(code string, change ...string) string {
	q := url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {y.client},
		"code":          {code},
		"redirect_uri":  {callback},
		"code_verifier": {verifier},
	}
	set(q, change)
	return q.Encode()
}

func (y *yard) live() (scopes []string) {
	y.t.Helper()
	y.read(func(tx *db.Tx) (err error) {
		scopes, err = liveTokens.All(tx)
		return err
	})
	return scopes
}

func (y *yard) read(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Read(context.Background(), fn); err != nil {
		y.t.Fatal(err)
	}
}
