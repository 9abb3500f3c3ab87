package github

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/id"
)

// who makes a call: an App by its JWT, an installation or a person by a token, or
// nobody.
type who struct {
	app    *App
	inst   *Installation
	person *Account
	token  *token
}

// account is the account that a call is made by: for an installation its App's bot.
func (w who) account() *Account {
	switch {
	case w.inst != nil:
		return w.inst.App.Bot
	case w.app != nil:
		return w.app.Bot
	}
	return w.person
}

// via is the App that acts, if one does.
func (w who) via() *App {
	if w.inst != nil {
		return w.inst.App
	}
	return nil
}

// key names whom limits are counted for.
func (w who) key() string {
	switch {
	case w.inst != nil:
		return "installation " + strconv.FormatInt(w.inst.ID, 10)
	case w.app != nil:
		return "app " + strconv.FormatInt(w.app.ID, 10)
	case w.person != nil:
		return "person " + w.person.Login
	}
	return "nobody"
}

// covers tells whether the token is for a repository.
func (w who) covers(r *Repo) bool {
	if w.token == nil || w.token.repos != nil && !w.token.repos[r.ID] {
		return false
	}
	if w.inst != nil {
		return w.inst.has(r)
	}
	return r.role(w.person) != ""
}

// has tells whether the token has one of some permissions. No permission needed is
// metadata, which every token may read.
func (w who) has(need string) bool {
	if need == "" {
		return true
	}
	for one := range strings.SplitSeq(need, "|") {
		name, level, _ := strings.Cut(one, "=")
		if w.token != nil && atLeast(w.token.permissions[name], level) {
			return true
		}
	}
	return false
}

// has tells whether the installation includes a repository.
func (i *Installation) has(r *Repo) bool {
	return !i.removed && r.owner == i.Account && (i.all || i.repos[r.ID])
}

var levels = map[string]int{"read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}

// atLeast tells whether a permission or role is as much as another.
func atLeast(have, need string) bool { return levels[have] >= levels[need] }

// authenticate finds out who calls, or refuses bad credentials.
func (c *call) authenticate() {
	scheme, text, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	switch {
	case text == "":
	case strings.EqualFold(scheme, "basic"):
		_, password, _ := c.r.BasicAuth()
		c.who = c.byToken(password)
	case strings.Count(text, ".") == 2 && !strings.HasPrefix(text, "ghs_"):
		c.who.app = c.byJWT(text)
	default:
		c.who = c.byToken(text)
	}
	if c.who.inst != nil && !c.who.inst.suspended.IsZero() {
		c.refuse(http.StatusForbidden, "This installation has been suspended")
	}
	if c.who.person != nil && !c.who.token.expires.IsZero() {
		c.header.Set("GitHub-Authentication-Token-Expiration", c.who.token.expires.Format("2006-01-02 15:04:05 MST"))
	}
	ok := true
	switch c.route.by {
	case byApp:
		ok = c.who.app != nil
	case byInstallation:
		ok = c.who.inst != nil
	case byPerson:
		if c.who.inst != nil {
			c.noAccess()
		}
		ok = c.who.person != nil
	case byToken:
		ok = c.who.token != nil
	case byAny:
		ok = c.who.app == nil || c.who.token != nil
	}
	if !ok && c.route.by == byApp && c.who.token != nil {
		c.refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	}
	if !ok {
		c.refuse(http.StatusUnauthorized, "Requires authentication")
	}
}

// byToken finds the owner of a token.
func (c *call) byToken(text string) who {
	w, ok := c.holder(text)
	if !ok {
		c.refuse(http.StatusUnauthorized, "Bad credentials")
	}
	return w
}

// holder returns who a good token was given to.
func (s *Server) holder(text string) (who, bool) {
	t := s.tokens[text]
	if t == nil || !t.expires.IsZero() && !s.now().Before(t.expires) || t.inst != nil && t.inst.removed {
		return who{}, false
	}
	return who{inst: t.inst, person: t.person, token: t}, true
}

// longest is how long an App's JWT may be good; clocks may differ by skew.
const (
	longest = 10 * time.Minute
	skew    = 60 * time.Second
)

// byJWT checks the JWT of an App, by RFC 7519 and the page "Generating a JSON Web
// Token (JWT) for a GitHub App".
func (c *call) byJWT(text string) *App {
	bad := func() { c.refuse(http.StatusUnauthorized, "A JSON web token could not be decoded") }
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		bad()
	}
	var head struct{ Alg string }
	var claims struct {
		Iss any
		Iat float64
		Exp float64
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || decode(parts[0], &head) != nil || decode(parts[1], &claims) != nil || head.Alg != "RS256" {
		bad()
	}
	issuer := fmt.Sprint(claims.Iss)
	if n, ok := claims.Iss.(float64); ok {
		issuer = strconv.FormatInt(int64(n), 10)
	}
	var app *App
	for _, a := range c.apps {
		if issuer == strconv.FormatInt(a.ID, 10) || issuer == a.ClientID {
			app = a
		}
	}
	if app == nil {
		c.refuse(http.StatusNotFound, "Integration not found")
	}
	if rsa.VerifyPKCS1v15(&app.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		bad()
	}
	now := c.now()
	expires, issued := time.Unix(int64(claims.Exp), 0), time.Unix(int64(claims.Iat), 0)
	switch {
	case claims.Exp == 0 || !now.Before(expires):
		c.refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case expires.Sub(now) > longest:
		c.refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	case issued.After(now):
		c.refuse(http.StatusUnauthorized, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case expires.Sub(issued) > longest+skew:
		c.refuse(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	}
	return app
}

func decode(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// mint makes a token of an installation in GitHub's long form.
func (s *Server) mint(i *Installation, permissions map[string]string, repos map[int64]bool) *token {
	part := func(v any) string {
		text, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	expires := s.seconds().Add(time.Hour)
	claims := obj{"aud": "github", "exp": expires.Unix(), "jti": id.Opaque(), "sub": i.ID}
	t := &token{
		text: fmt.Sprintf("ghs_%d_%s.%s.%s%s", i.App.ID, part(obj{"alg": "ES256", "typ": "JWT"}), part(claims),
			id.Opaque(), id.Opaque()),
		expires: expires, inst: i, permissions: permissions, repos: repos,
	}
	s.tokens[t.text] = t
	return t
}

// NewToken is what a fine-grained personal access token may do.
type NewToken struct {
	Repos       []*Repo // empty: all of the person
	Permissions map[string]string
	Expires     time.Duration // 0: never
}

// PersonalToken makes a fine-grained personal access token of a person.
func (a *Account) PersonalToken(n NewToken) string {
	s := a.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &token{text: "github_pat_" + id.Opaque(), person: a, permissions: maps.Clone(n.Permissions)}
	if t.permissions == nil {
		t.permissions = map[string]string{}
	}
	t.permissions["metadata"] = "read"
	if n.Expires > 0 {
		t.expires = s.seconds().Add(n.Expires)
	}
	if len(n.Repos) > 0 {
		t.repos = map[int64]bool{}
		for _, r := range n.Repos {
			t.repos[r.ID] = true
		}
	}
	s.tokens[t.text] = t
	return t.text
}

// role is what a person may do in a repository, or empty.
func (r *Repo) role(a *Account) string {
	switch {
	case a == nil:
		return ""
	case r.owner == a, r.owner.members[a.ID] == "admin":
		return "admin"
	case r.roles[a.ID] != "":
		return r.roles[a.ID]
	case r.owner.members[a.ID] == "member", !r.private:
		return "read"
	}
	return ""
}
