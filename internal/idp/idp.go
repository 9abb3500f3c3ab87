// Package idp asks an identity provider who a person is: the OpenID Connect
// provider of an organisation, or GitHub. A sign-in begins with an address to
// which the browser is sent, and ends with the code that the browser brings back;
// in between, the browser carries a Ticket. Customers give the addresses of
// providers, so every connection is checked against its real destination when it
// is dialled.
package idp

import (
	"context"
	"crypto/subtle"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"yardmaster/internal/dial"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

// Limits of a provider's answers.
const (
	patience  = 10 * time.Second // for one request
	maxAnswer = 1 << 20          // bytes
	maxHops   = 3
)

// Person is the identity that a provider asserts.
type Person struct {
	Issuer    string // the provider that asserts the identity
	Subject   string // the person's permanent id at the provider
	Email     string // verified, in lower case
	Emails    []string
	Name      string
	Login     string
	AvatarURL string
}

// Ticket is the state of a sign-in, which the browser carries from its beginning
// to its end. It is sealed: nobody else may read or write it.
type Ticket struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// NewTicket makes the ticket of a new sign-in.
func NewTicket() Ticket {
	return Ticket{id.Opaque(), id.Opaque(), oauth2.GenerateVerifier()}
}

// Good tells whether the state of an answer is the ticket's.
func (t Ticket) Good(state string) bool {
	return t.State != "" && subtle.ConstantTimeCompare([]byte(t.State), []byte(state)) == 1
}

// Client makes requests to providers.
type Client struct {
	// Now is the clock for cached discovery documents.
	Now func() time.Time

	guard *dial.Guard
	http  *http.Client

	mu    sync.Mutex
	known map[string]provider // by issuer
}

// New makes a client that connects to addresses for which g allows it.
func New(now func() time.Time, g *dial.Guard) *Client {
	c := &Client{Now: now, guard: g, known: map[string]provider{}}
	c.http = &http.Client{
		Timeout: patience,
		Transport: bounded{&http.Transport{
			DialContext: c.guard.Dialer(patience).DialContext, TLSHandshakeTimeout: patience, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		}},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxHops || !c.fit(req.URL.Scheme, req.URL.Hostname()) {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	return c
}

// fit tells whether the client may use an address: https, or http to an address in
// the allowed networks.
func (c *Client) fit(scheme, host string) bool {
	if scheme == "http" {
		ip, err := netip.ParseAddr(host)
		return err == nil && c.guard.Allows(ip)
	}
	return scheme == "https" && host != ""
}

// bounded limits the body of an answer to maxAnswer bytes.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// through makes oauth2 use the client's HTTP client.
func (c *Client) through(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, c.http)
}

// unreachable is the same fault for every failure to ask a provider: more detail
// would let a customer probe our network.
func unreachable(cause error) error {
	return fault.New(fault.Unavailable, "provider-unreachable", "The identity provider could not be asked.").Because(cause)
}

func refused(detail string, cause error) error {
	return fault.New(fault.Forbidden, "provider-refused", detail).Because(cause)
}

func picture(address string) string {
	if !strings.HasPrefix(address, "https://") || len(address) > 1000 {
		return ""
	}
	return address
}

// short limits a person's name to 100 characters.
func short(name string) string {
	if r := []rune(name); len(r) > 100 {
		return string(r[:100])
	}
	return name
}
