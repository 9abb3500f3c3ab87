// Package webpush sends messages to the browsers of people: encrypted for the browser (RFC
// 8291) and signed by this server (RFC 8292), through the service of the browser's maker
// (RFC 8030), whose address the browser names.
package webpush

import (
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	lib "github.com/SherClockHolmes/webpush-go"

	"yardmaster/internal/dial"
)

// Limits of an attempt.
const (
	Patience = 10 * time.Second
	// MaxMessage is how many bytes a message may have: one record of 4096, less what
	// encryption adds.
	MaxMessage = 3900
	longest    = time.Hour // that a service may have us wait
)

// Keys are what this server signs with. They are for the life of the installation: a
// browser takes messages of no other.
type Keys struct {
	Public  string `json:"public"` // base64url, as browsers take it
	Private string `json:"private"`
}

// NewKeys makes keys.
func NewKeys() (Keys, error) {
	private, public, err := lib.GenerateVAPIDKeys()
	return Keys{Public: public, Private: private}, err
}

// Subscription is where a browser takes messages, and its keys in base64url.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	P256DH   string `json:"p256dh"` // its public key, an uncompressed point
	Auth     string `json:"auth"`   // 16 bytes
}

// Check says what is wrong with the keys of a subscription, as a name and what it has to
// be; empty: nothing.
func (s Subscription) Check() (field, fault string) {
	key, err := decode(s.P256DH)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(key)
	}
	if err != nil {
		return "p256dh", "is not the public key of a browser"
	}
	if auth, err := decode(s.Auth); err != nil || len(auth) != 16 {
		return "auth", "is not 16 bytes in base64url"
	}
	return "", ""
}

func decode(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// Message is what a browser gets.
type Message struct {
	Body   []byte
	Topic  string // a later message of the same topic takes its place; at most 32 characters of base64url
	Urgent bool
	Life   time.Duration // for which the service keeps it
}

// Outcome is what came of an attempt.
type Outcome struct {
	Sent  bool
	Gone  bool          // the browser takes no more messages
	Never bool          // another attempt would be refused as well
	After time.Duration // not to be tried again before; 0: the service did not say
	Why   string        // of a failure, for people
}

// Sender sends messages. Safe for concurrent use.
type Sender struct {
	keys    Keys
	subject string
	http    *http.Client
}

// NewSender makes a Sender that connects to addresses for which g allows it, and follows no
// redirect. subject is the address of the server: services tell its operator of trouble.
func NewSender(g *dial.Guard, keys Keys, subject string) *Sender {
	return &Sender{keys: keys, subject: subject, http: &http.Client{
		Timeout: Patience,
		Transport: &http.Transport{
			DialContext: g.Dialer(Patience).DialContext, TLSHandshakeTimeout: Patience, ForceAttemptHTTP2: true,
			MaxIdleConns: 64, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// PublicKey is the key that a browser subscribes with.
func (s *Sender) PublicKey() string { return s.keys.Public }

// Send makes one attempt. It answers within Patience.
func (s *Sender) Send(ctx context.Context, to Subscription, m Message) Outcome {
	if len(m.Body) > MaxMessage {
		return Outcome{Never: true, Why: fmt.Sprintf("The message has %d bytes; the most are %d.", len(m.Body), MaxMessage)}
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	o := lib.Options{
		HTTPClient: s.http, Subscriber: s.subject, TTL: int(m.Life.Seconds()), Topic: m.Topic, Urgency: lib.UrgencyNormal,
		VAPIDPublicKey: s.keys.Public, VAPIDPrivateKey: s.keys.Private,
	}
	if m.Urgent {
		o.Urgency = lib.UrgencyHigh
	}
	resp, err := lib.SendNotificationWithContext(ctx, m.Body, &lib.Subscription{
		Endpoint: to.Endpoint, Keys: lib.Keys{Auth: to.Auth, P256dh: to.P256DH},
	}, &o)
	if err != nil {
		if t, is := err.(net.Error); is && t.Timeout() { //nolint:errorlint // the client's own error is outermost
			return Outcome{Why: "There was no answer within 10 seconds."}
		}
		return Outcome{Why: "No connection was made, or it broke."}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10)) // so that the connection can be used again
	out := Outcome{Why: fmt.Sprintf("The answer has the status %d.", resp.StatusCode)}
	switch c := resp.StatusCode; {
	case c >= 200 && c < 300:
		return Outcome{Sent: true}
	case c == http.StatusNotFound || c == http.StatusGone:
		out.Gone = true
	case c == http.StatusTooManyRequests || c >= 500:
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			out.After = min(time.Duration(s)*time.Second, longest)
		}
	default:
		out.Never = true
	}
	return out
}
