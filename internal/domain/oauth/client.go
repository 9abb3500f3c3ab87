package oauth

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"yardmaster/internal/lazy"
	"yardmaster/internal/seal"
)

// sealClient is the purpose for which registrations are sealed.
const sealClient = "oauth-client"

// registration is the content of a client_id.
type registration struct {
	Name      string   `json:"n"`
	Redirects []string `json:"r"`
}

type registerIn struct {
	Name          string   `json:"client_name,omitempty" doc:"shown to the person who is asked"`
	Redirects     []string `json:"redirect_uris,omitempty" doc:"where browsers may be sent back to"`
	GrantTypes    []string `json:"grant_types,omitempty" doc:"authorization_code, or left out"`
	ResponseTypes []string `json:"response_types,omitempty" doc:"code, or left out"`
}

// ClientRegistration is the answer to a registration (RFC 7591). It never has a
// client_secret.
type ClientRegistration struct {
	ClientID      string   `json:"client_id"`
	Name          string   `json:"client_name"`
	Redirects     []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
}

// Limits of a registration. They keep the client_id short enough for a query string.
const (
	maxName      = 100
	maxRedirects = 8
	maxRedirect  = 300
)

const (
	grantCode    = "authorization_code"
	responseCode = "code"
)

func (s *Service) register(_ context.Context, in registerIn) (ClientRegistration, error) {
	none := ClientRegistration{}
	if len(in.Redirects) == 0 || len(in.Redirects) > maxRedirects {
		return none, refuse("invalid_redirect_uri", "redirect_uris must name one to eight addresses.")
	}
	for _, uri := range in.Redirects {
		if why := checkRedirect(uri); why != "" {
			return none, refuse("invalid_redirect_uri", "An address of redirect_uris "+why+".")
		}
	}
	if in.GrantTypes != nil && !slices.Contains(in.GrantTypes, grantCode) {
		return none, refuse("invalid_client_metadata", "Of grant_types, only authorization_code is implemented.")
	}
	if in.ResponseTypes != nil && !slices.Contains(in.ResponseTypes, responseCode) {
		return none, refuse("invalid_client_metadata", "Of response_types, only code is implemented.")
	}
	name := strings.TrimSpace(in.Name)
	if !presentable(name) {
		return none, refuse("invalid_client_metadata", "client_name must be at most 100 printable characters.")
	}
	if imitatesUs(name) {
		return none, refuse("invalid_client_metadata", "client_name reads like the name of this server.")
	}
	if name == "" {
		name = "A program without a name"
	}
	b, err := json.Marshal(registration{name, in.Redirects})
	if err != nil {
		return none, err
	}
	return ClientRegistration{s.Clients.Seal(sealClient, b), name, in.Redirects, []string{grantCode}, []string{responseCode}, "none"}, nil
}

// client unseals a client_id. It returns false if this server has not issued it.
func (s *Service) client(clientID string) (registration, bool) {
	var r registration
	b, err := s.Clients.Unseal(sealClient, clientID)
	if err != nil {
		b, err = s.Ring.Unseal(sealClient, clientID)
	}
	if err != nil || json.Unmarshal(b, &r) != nil {
		return r, false
	}
	return r, true
}

// clientKey returns the stored form of a client_id.
func clientKey(clientID string) string { return seal.Hash(clientID) }

// presentable tells whether a name can be shown to a person: it has at most maxName
// characters, none of them invisible or changing the direction of text.
func presentable(name string) bool {
	return len([]rune(name)) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

var (
	// host matches hosts that may be put into a Content-Security-Policy. It allows no
	// character with a meaning there.
	host = lazy.New(`^(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[::1\])(?::[0-9]{1,5})?$`)
	// private matches a scheme that a program registers with its system: a domain
	// name in reverse, so that it matches no scheme with a meaning of its own.
	private = lazy.New(`^[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+$`)
)

// checkRedirect returns what is wrong with a redirect address, or "". It allows https
// anywhere, http on a loopback address (RFC 8252, section 7.3), and a private-use
// scheme (section 7.1).
func checkRedirect(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil || len(uri) > maxRedirect || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return "is not a URI of at most 300 characters"
	case strings.Contains(uri, "#"):
		return "has a fragment"
	case u.User != nil:
		return "names a user"
	case u.Scheme == "https" && host.MatchString(u.Host), u.Scheme == "http" && host.MatchString(u.Host) && loopback(u):
		return ""
	case private.MatchString(u.Scheme) && u.Opaque == "":
		return ""
	}
	return "must use https, http on a loopback address, or a scheme that is a domain name in reverse"
}

func loopback(u *url.URL) bool {
	switch u.Hostname() {
	case "127.0.0.1", "::1", "localhost":
		return true
	}
	return false
}

// registered tells whether the client may be sent to uri. It must equal a registered
// address byte for byte, except for the port of a loopback address, which a program
// learns when it starts to listen.
func (r registration) registered(uri string) bool {
	if checkRedirect(uri) != "" {
		return false
	}
	if slices.Contains(r.Redirects, uri) {
		return true
	}
	got, _ := url.Parse(uri) // checkRedirect has parsed it
	if got.Scheme != "http" {
		return false
	}
	return slices.ContainsFunc(r.Redirects, func(known string) bool {
		want, err := url.Parse(known)
		return err == nil && want.Scheme == "http" && loopback(want) && want.Hostname() == got.Hostname() && portless(want) == portless(got)
	})
}

func portless(u *url.URL) string {
	c := *u
	c.Host = u.Hostname()
	return c.String()
}

// answerAt returns a redirect address with the answer to an authorization request
// added to its query.
func answerAt(redirect string, answer url.Values) string {
	sep := "?"
	if strings.Contains(redirect, "?") {
		sep = "&"
	}
	return redirect + sep + answer.Encode()
}

// source returns a redirect address as a source for form-action in a
// Content-Security-Policy. Browsers apply that to redirects as well.
func source(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil {
		return ""
	}
	if strings.HasPrefix(u.Host, "[") || u.Scheme != "https" && u.Scheme != "http" {
		return u.Scheme + ":" // a policy cannot name more of such an address
	}
	return u.Scheme + "://" + u.Host
}
