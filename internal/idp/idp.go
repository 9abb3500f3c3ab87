// Package idp asks others who a person is: the OpenID Connect provider of an
// organisation, or GitHub. A sign-in begins with an address to send the
// browser to and ends with the code it brings back; in between, the browser
// carries a ticket. The addresses of providers come from customers, so every
// connection is judged by where it really leads when it is dialled.
package idp

import (
	"context"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/oauth2"

	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

// Bounds of what a provider may do to us.
const (
	patience  = 10 * time.Second // for one request
	maxAnswer = 1 << 20          // bytes
	maxHops   = 3
)

// Person is whom a provider vouches for.
type Person struct {
	Issuer    string // who vouches
	Subject   string // what the person is called there for good
	Email     string // proved, in lower case
	Emails    []string
	Name      string
	Login     string
	AvatarURL string
}

// Ticket is what the browser carries from the beginning of a sign-in to its
// end. Nobody else may read or write it.
type Ticket struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// NewTicket begins a sign-in.
func NewTicket() Ticket {
	return Ticket{id.Opaque(), id.Opaque(), oauth2.GenerateVerifier()}
}

// Good tells whether an answer belongs to the ticket.
func (t Ticket) Good(state string) bool {
	return t.State != "" && subtle.ConstantTimeCompare([]byte(t.State), []byte(state)) == 1
}

// Client speaks to providers.
type Client struct {
	// Now dates what is kept of providers.
	Now func() time.Time

	allowed []netip.Prefix
	http    *http.Client

	mu    sync.Mutex
	known map[string]provider // by issuer
}

// New makes a client that reaches public addresses, and private ones that lie
// in the allowed networks.
func New(now func() time.Time, allowed []netip.Prefix) *Client {
	c := &Client{Now: now, allowed: allowed, known: map[string]provider{}}
	public := ssrf.New(ssrf.WithAnyPort())
	dialer := &net.Dialer{Timeout: patience, Control: func(network, address string, conn syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err == nil && c.allows(at.Addr()) {
			return nil
		}
		return public.Safe(network, address, conn)
	}}
	c.http = &http.Client{
		Timeout: patience,
		Transport: bounded{&http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: patience, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
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

func (c *Client) allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(c.allowed, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// fit tells whether an address may be used at all: https, and http to an
// address of the allowed networks.
func (c *Client) fit(scheme, host string) bool {
	if scheme == "http" {
		ip, err := netip.ParseAddr(host)
		return err == nil && c.allows(ip)
	}
	return scheme == "https" && host != ""
}

// bounded ends answers that do not end.
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

// through makes oauth2 use our client.
func (c *Client) through(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, c.http)
}

// unreachable is the one answer to a provider that cannot be asked, whatever
// lies there: it would be a probe of our network otherwise.
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

// short keeps what people call themselves within bounds.
func short(name string) string {
	if r := []rune(name); len(r) > 100 {
		return string(r[:100])
	}
	return name
}
