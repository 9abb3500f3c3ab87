package app

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/dial"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/provider"
	"yardmaster/internal/proof/seed"
)

// traveller is a browser that goes wherever it is sent.
func (y *yard) traveller() *visitor {
	v := y.visitor()
	v.browser.CheckRedirect = nil
	return v
}

var alert = regexp.MustCompile(`<p role="alert">(.*)</p>`)

// goes opens a path and answers where that ended: the failure that the sign-in
// page shows, or "" and the body of where it was to lead.
func (v *visitor) goes(path string) (failure, body string) {
	v.t.Helper()
	_, body = v.open(http.MethodGet, v.URL()+path, "")
	if found := alert.FindStringSubmatch(body); found != nil {
		return html.UnescapeString(found[1]), body
	}
	return "", body
}

// me is who a browser is signed in as.
type me struct {
	Approved bool
	Scopes   []string
	User     struct{ ID, Login, Name, Email string }
	Account  struct{ ID, Login, Role string }
}

func (v *visitor) me() (out me) {
	v.t.Helper()
	resp, body := v.open(http.MethodGet, v.URL()+"/v1/me", "")
	if resp.StatusCode == 200 {
		decode(v.t, answer{t: v.t, body: []byte(body)}, &out)
	}
	return out
}

// sso configures acme's provider.
func (y *yard) sso(p *provider.Provider) {
	y.t.Helper()
	y.send("PUT", "/v1/org-sso", y.owner,
		`{"issuer": "`+p.URL+`", "client_id": "`+provider.Client+`", "client_secret": "`+provider.Secret+
			`", "domains": ["Acme.example"]}`).want(200)
}

const ssoStart = "/auth/oidc/acme/start?return_to=%2Fv1%2Fme"

// People of an organisation sign in at its own provider; those who are new
// become members.
func TestOIDCSignIn(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			y := start(t, e, "--allow-networks", "127.0.0.0/8")
			p := provider.New(t)
			y.sso(p)
			p.Is(map[string]any{"sub": "1", "email": "Eva.Lu@acme.example", "email_verified": true, "name": "Eva Lu"})
			v := y.traveller()
			if failure, _ := v.goes(ssoStart); failure != "" {
				t.Fatal(failure)
			}
			eva := v.me()
			if eva.User.Login != "eva-lu" || eva.User.Name != "Eva Lu" || eva.Account.Login != "acme" || eva.Account.Role != "member" ||
				!eva.Approved {
				t.Errorf("she is %+v", eva)
			}
			for _, scope := range eva.Scopes {
				if strings.HasPrefix(scope, "write:self:") || strings.HasPrefix(scope, "admin:") {
					t.Errorf("a provider of an account vouches for %s", scope)
				}
			}
			// The subject names her, whatever her address is by then.
			p.Is(map[string]any{"sub": "1", "email": "eva.braun@acme.example", "email_verified": "true"})
			again := y.traveller()
			again.goes(ssoStart)
			if again.me().User.ID != eva.User.ID {
				t.Errorf("with another address she is %+v", again.me())
			}
			// What the provider vouches for is the account's.
			second := y.tenant("second")
			y.in(second, func(tx *db.Tx) error {
				return seed.Member{Account: second, User: eva.User.ID, Role: string(policy.Owner)}.Add(tx)
			})
			cookie := v.cookie()
			y.send("GET", "/v1/me", "", "", "Cookie", cookie, "X-Svc-Account", "second").problem(403, "sso-session")
			y.send("POST", "/v1/me/active-account", "", `{"account": "second"}`, "Cookie", cookie, "Origin", y.URL()).problem(403,
				"sso-session")
			// It ends with the configuration.
			y.send("DELETE", "/v1/org-sso", y.owner, "").want(200)
			y.send("GET", "/v1/me", "", "", "Cookie", cookie).problem(401, "unauthenticated")
			if failure, _ := v.goes(ssoStart); !strings.Contains(failure, "No organisation") {
				t.Errorf("without a configuration: %q", failure)
			}
		})
	}
}

func (v *visitor) cookie() string {
	at, err := url.Parse(v.URL())
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.browser.Jar.Cookies(at) {
		if c.Name == "svc_session" {
			return c.Name + "=" + c.Value
		}
	}
	v.t.Fatal("there is no session")
	return ""
}

// An account's provider cannot make anybody somebody else, nor more than an
// admin of the account.
func TestOIDCVouchesForItsOwn(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--allow-networks", "127.0.0.0/8")
	p := provider.New(t)
	y.send("PUT", "/v1/org-sso", y.owner,
		`{"issuer": "`+p.URL+`", "client_id": "`+provider.Client+`", "client_secret": "`+provider.Secret+
			`", "domains": ["example.com", "acme.example"]}`).want(200)
	y.tenant("rival")
	rival := y.tenant("third")
	y.person("bob", rival, policy.Owner)
	for name, c := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"a user of another account": {map[string]any{"sub": "2", "email": "bob@example.com", "email_verified": true},
			"no member of the account"},
		"another domain": {map[string]any{"sub": "3", "email": "eve@elsewhere.example", "email_verified": true},
			"none of its domains"},
		"an address that is none": {map[string]any{"sub": "3", "email": "eve@x@acme.example", "email_verified": true},
			"none of its domains"},
		"an address nobody proved": {map[string]any{"sub": "4", "email": "eve@acme.example", "email_verified": false},
			"not say that your e-mail address is proved"},
		"nothing said of its proof": {map[string]any{"sub": "4", "email": "eve@acme.example"},
			"not say that your e-mail address is proved"},
		"somebody who changed their mind": {nil, "did not let you sign in"},
	} {
		p.Is(c.claims)
		v := y.traveller()
		if failure, _ := v.goes(ssoStart); !strings.Contains(failure, c.want) || v.me().User.ID != "" {
			t.Errorf("%s: %q, as %+v", name, failure, v.me())
		}
	}
	p.Is(map[string]any{"sub": "5", "email": "ada@example.com", "email_verified": true})
	v := y.traveller()
	v.goes(ssoStart)
	ada := v.me()
	if ada.User.ID != y.user || ada.Account.Role != "admin" {
		t.Errorf("the owner, by the word of a provider that an admin may have set: %+v", ada)
	}
}

// What a provider sends is checked, all of it.
func TestOIDCAnswersAreChecked(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--allow-networks", "127.0.0.0/8")
	p := provider.New(t)
	y.sso(p)
	p.Is(map[string]any{"sub": "1", "email": "eva@acme.example", "email_verified": true})
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(){
		"nonce":          func() { p.Lie = map[string]any{"nonce": "another"} },
		"no nonce":       func() { p.Lie = map[string]any{"nonce": ""} },
		"issuer":         func() { p.Lie = map[string]any{"iss": "https://elsewhere.example"} },
		"audience":       func() { p.Lie = map[string]any{"aud": "another"} },
		"party":          func() { p.Lie = map[string]any{"aud": []string{provider.Client, "another"}, "azp": "another"} },
		"expired":        func() { p.Lie = map[string]any{"exp": time.Now().Add(-time.Hour).Unix()} },
		"nobody":         func() { p.Lie = map[string]any{"sub": ""} },
		"signature":      func() { p.Sign = other },
		"iss parameter":  func() { p.Issuer = "https://elsewhere.example" },
		"no iss, though": func() { p.Issuer = "" },
	} {
		p.Set(func() {
			p.Lie, p.Sign, p.Issuer = nil, p.Key, p.URL
			spoil()
		})
		v := y.traveller()
		if failure, _ := v.goes(ssoStart); failure == "" || v.me().User.ID != "" {
			t.Errorf("%s: %q, as %+v", name, failure, v.me())
		}
	}
	p.Set(func() { p.Lie, p.Sign, p.Issuer = nil, p.Key, p.URL })

	// An answer is worth something only to the browser that began.
	v := y.traveller()
	v.browser.CheckRedirect = func(to *http.Request, _ []*http.Request) error {
		if to.URL.Path == "/auth/oidc/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	resp, _ := v.open(http.MethodGet, y.URL()+ssoStart, "")
	back, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	if failure, _ := y.traveller().goes(back.RequestURI()); !strings.Contains(failure, "not begun in this browser") {
		t.Errorf("another browser: %q", failure)
	}
	var before, after int
	p.Set(func() { before = p.Asked })
	flows := func() (n int) {
		for _, c := range v.browser.Jar.Cookies(back) {
			if c.Name == "svc_flow" {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name string
		left int // flows that the browser is still in
	}{{"state", 1}, {"code", 0}} {
		q := back.Query()
		q.Set(c.name, "x")
		if failure, _ := v.goes(back.Path + "?" + q.Encode()); failure == "" {
			t.Errorf("with another %s: signed in", c.name)
		}
		if n := flows(); n != c.left {
			t.Errorf("after another %s the browser is in %d sign-ins", c.name, n)
		}
	}
	if p.Set(func() { after = p.Asked }); after != before+1 {
		t.Errorf("the provider was asked %d times: a wrong state must end it before", after-before)
	}
	resp, _ = v.open(http.MethodGet, y.URL()+ssoStart, "") // the one before was refused, and is over
	if back, err = resp.Location(); err != nil {
		t.Fatal(err)
	}
	if failure, _ := v.goes(back.RequestURI()); failure != "" || v.me().User.Login != "eva" {
		t.Errorf("the right answer: %q", failure)
	}
	// Nobody is sent elsewhere in the end.
	elsewhere := y.traveller()
	elsewhere.browser.CheckRedirect = func(to *http.Request, _ []*http.Request) error {
		if to.URL.Host == "evil.example" {
			t.Errorf("sent to %s", to.URL)
		}
		return nil
	}
	elsewhere.goes("/auth/oidc/acme/start?return_to=https%3A%2F%2Fevil.example")
}

// Addresses inside are not reached, unless the operator allows them, and the
// answer is the same whatever is there.
func TestOIDCStaysOutside(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	p := provider.New(t)
	for _, issuer := range []string{p.URL, "http://127.0.0.1:1", "https://127.0.0.1:1", "https://localhost", "https://10.0.0.1",
		"https://[::1]", "https://169.254.169.254"} {
		a := y.send("PUT", "/v1/org-sso", y.owner,
			`{"issuer": "`+issuer+`", "client_id": "c", "client_secret": "s", "domains": ["acme.example"]}`).problem(400, "invalid")
		want := dial.Unreachable
		if strings.HasPrefix(issuer, "http:") { // which is looked at first
			want = "must be an https address"
		}
		if got := fmt.Sprint(a["errors"]); got != "map[issuer:["+want+"]]" {
			t.Errorf("%s: %s", issuer, got)
		}
	}
	// What is wrong with the address itself is said, and nobody is asked.
	a := y.send("PUT", "/v1/org-sso", y.owner,
		`{"issuer": "http://93.184.215.14", "client_id": "c", "client_secret": "s", "domains": ["acme.example"]}`).problem(400, "invalid")
	if got := fmt.Sprint(a["errors"]); got != "map[issuer:[must be an https address]]" {
		t.Errorf("an issuer without TLS: %s", got)
	}
	asked := 0
	if p.Set(func() { asked = p.Asked }); asked > 0 {
		t.Errorf("the provider inside was asked %d times", asked)
	}
}

// With GitHub, people whom somebody knows or invited come in, by any proved
// address, and stay who they are.
func TestGitHubSignIn(t *testing.T) {
	t.Parallel()
	p := provider.New(t)
	y := start(t, db.SQLite, "--github-url", p.URL, "--github-client-id", provider.Client, "--github-client-secret", provider.Secret)
	const begin = "/auth/github/start?return_to=%2Fv1%2Fme"
	emails := func(list ...map[string]any) { p.Set(func() { p.Emails = list }) }
	p.Is(map[string]any{"id": 7, "login": "Octo_Cat", "name": "Octo Cat"})
	emails(map[string]any{"email": "ada@example.com", "verified": false, "primary": true})
	if failure, _ := y.traveller().goes(begin); !strings.Contains(failure, "no verified e-mail") {
		t.Errorf("without a proved address: %q", failure)
	}
	emails(map[string]any{"email": "octo@cat.example", "verified": true, "primary": true},
		map[string]any{"email": "ada@example.com", "verified": false})
	if failure, _ := y.traveller().goes(begin); !strings.Contains(failure, "Ask for an invitation") {
		t.Errorf("a stranger: %q", failure)
	}
	emails(map[string]any{"email": "octo@cat.example", "verified": true, "primary": true},
		map[string]any{"email": "Invited@example.com", "verified": true})
	y.send("POST", "/v1/org/members", y.owner, `{"email": "invited@example.com", "role": "viewer"}`).want(201)
	v := y.traveller()
	if failure, _ := v.goes(begin); failure != "" {
		t.Fatal(failure)
	}
	octo := v.me()
	if octo.User.Login != "octo-cat" || octo.User.Email != "invited@example.com" || octo.Account.Login != "octo-cat" {
		t.Errorf("who was invited is %+v", octo)
	}
	p.Is(map[string]any{"id": 7, "login": "renamed"})
	emails(map[string]any{"email": "octo@cat.example", "verified": true, "primary": true})
	v = y.traveller()
	v.goes(begin)
	if v.me().User.ID != octo.User.ID {
		t.Errorf("with another name and address they are %+v", v.me())
	}
	p.Is(map[string]any{"id": 8, "login": "lovelace"})
	emails(map[string]any{"email": "ADA@example.com", "verified": true})
	v = y.traveller()
	v.goes(begin)
	if v.me().User.ID != y.user || v.me().Account.Role != "owner" {
		t.Errorf("ada is %+v", v.me())
	}
	// What somebody does at the host is theirs here.
	host, err := githubs{y.App}.Name(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = y.db.Read(db.WithAccount(t.Context(), y.acct), func(tx *db.Tx) error {
		user, sure, err := y.persons().User(tx, host, codehost.User{Login: "lovelace", ID: "8"})
		if user != y.user || !sure {
			t.Errorf("at the host lovelace is %q, sure: %t", user, sure)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The page offers what is configured, and every form of it leads somewhere.
func TestSignInPageShowsTheWays(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	_, page := y.visitor().open("GET", y.URL()+"/login", "")
	for _, not := range []string{"/auth/oidc", "/auth/github"} { // a code is offered always: without mail the server has it
		if strings.Contains(page, not) {
			t.Errorf("%s is offered and not configured", not)
		}
	}
	p := provider.New(t)
	y = start(t, db.SQLite, "--smtp-url", "smtp+plain://127.0.0.1:1", "--allow-networks", "127.0.0.0/8", "--github-url", p.URL,
		"--github-client-id", provider.Client, "--github-client-secret", provider.Secret)
	y.sso(p)
	var out struct{ Methods []string }
	decode(t, y.send("GET", "/auth/methods", "", "").want(200), &out)
	if strings.Join(out.Methods, " ") != "password email oidc github" {
		t.Errorf("methods %v", out.Methods)
	}
	p.Is(map[string]any{"sub": "1", "email": "eva@acme.example", "email_verified": true})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := y.traveller()
	v.browser.Jar = jar
	_, page = v.open("GET", y.URL()+"/login?return_to=%2Fv1%2Fme", "")
	for _, want := range []string{`action="/auth/password"`, `action="/auth/email"`, `action="/auth/oidc"`,
		`href="/auth/github/start?return_to=%2Fv1%2Fme"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	// Forms of the page lead to this server alone, so a page of its own leads on.
	for _, at := range []string{"/login", "/auth/oidc?org=acme", "/auth/reauth"} {
		resp, _ := v.open("GET", y.URL()+at, "")
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; form-action 'self'") {
			t.Errorf("%s: %s", at, policy)
		}
	}
	resp, page := v.open("GET", y.URL()+"/auth/oidc?org=+ACME+&return_to=%2Fv1%2Fme", "")
	_, to, _ := strings.Cut(resp.Header.Get("Refresh"), "0;url=")
	if !strings.HasPrefix(to, p.URL) || !strings.Contains(page, `href="`+p.URL) || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Fatalf("%v\n%s", resp.Header, page)
	}
	if v.open("GET", to, ""); v.me().User.Login != "eva" {
		t.Errorf("typed in: %+v", v.me())
	}
}

// SAML is refused as what it is, whatever it is dressed in: 400 and not 415.
func TestSAMLIsRefusedAsABody(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	for _, media := range []string{"application/xml", "text/xml; charset=utf-8", "application/samlmetadata+xml"} {
		p := y.send("PUT", "/v1/org-sso", y.owner, `<md:EntityDescriptor/>`, "Content-Type", media).problem(400, "invalid")
		if p["errors"] == nil {
			t.Errorf("%s: %v", media, p)
		}
	}
	y.send("PUT", "/v1/org-sso", y.owner, `SAML`, "Content-Type", "text/plain").problem(415, "unsupported-media-type")
}
