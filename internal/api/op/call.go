package op

import (
	"bytes"
	"context"
	"io"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Call is one call of an op, as a surface brings it. It is used once.
type Call struct {
	Op        *Op // nil for a call of nothing that is here, which Refused explains
	Request   Request
	Presented Presented
	// Refused is why the surface takes no such call, if it does not. It is told
	// once the call was counted for its address.
	Refused error
	// Changes counts the call as a write, and Conversation is which conversation
	// of the caller's the write is counted for.
	Changes      bool
	Conversation string
	// Keys are the values of Idempotency-Key; there may be one. Bound is what
	// the surface binds it to, besides the credential and the body: the method
	// and the address as they were sent.
	Keys, Bound []string

	// Path is the address of what is called, which a problem names. Arguments
	// make their own.
	Path string
	Sent
	// Arguments are all inputs but headers in one flat object, in the place of
	// Sent.
	Arguments map[string]jsontext.Value

	// Tail takes a stream, and Last is the id of the frame that the caller had
	// last.
	Tail Tail
	Last string

	query     url.Values                // of Arguments
	members   map[string]jsontext.Value // of the body, of Arguments
	malformed error                     // why Arguments are none of the op
	actor     policy.Actor
	state     limit.State
	counted   bool
	sink      *Sink
}

// Sent are the inputs of a call where HTTP has them.
type Sent struct {
	Texts       Texts  // nil: none
	Query       string // as it was sent
	Body        io.Reader
	Length      int64 // of the body in bytes; -1 if that is not known
	ContentType string
}

// Texts are the inputs of a call that are neither in its query nor its body.
type Texts interface {
	Path(name string) string
	Header(name string) string
}

// Header is a header of the call, empty if it has no such header.
func (c *Call) Header(name string) string {
	if c.Texts == nil {
		return ""
	}
	return c.Texts.Header(name)
}

func (c *Call) path(name string) string {
	if c.Texts == nil {
		return ""
	}
	return c.Texts.Path(name)
}

// JSON reads the whole body of a call of a Raw op. It fails with
// fault.UnsupportedMedia for anything but JSON, with fault.TooLarge for more
// than the row takes, and with fault.Invalid for a body that breaks off.
func (c *Call) JSON() ([]byte, error) {
	if !isJSON(c.ContentType) {
		return nil, fault.New(fault.UnsupportedMedia, "", "The body must be application/json.")
	}
	var b bytes.Buffer
	err := c.read(&b)
	return b.Bytes(), err
}

// Request is what a handler may know of the call besides its input.
type Request struct {
	ID      string
	IP      string // of the caller, past trusted proxies
	BaseURL string
	Secure  bool // over https, or a proxy says so
}

type requestKey struct{}

// RequestOf finds the request being served.
func RequestOf(ctx context.Context) Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return *r
	}
	return Request{}
}

// Presented is what a call brought to prove who makes it.
type Presented struct {
	Bearer     string // a token
	Session    string // a browser's
	Account    string // the account that the call is about, by id or login; sessions only
	SameOrigin bool   // a browser says that one of our own pages sends it
	Came       string // where the call came from and to, for a caller that is refused
	Write      bool   // the method changes things
}

// authorization is what a Holder is shown.
func (p Presented) authorization() string {
	if p.Bearer == "" {
		return ""
	}
	return "Bearer " + p.Bearer
}

// Answer is what a call is answered.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte // until Free; of a stream, nothing: its Tail has it
	Header      map[string]string
	Cookies     []string // values of Set-Cookie
	Asset       *Asset   // that the body is of, if it is of one

	Failure    *fault.Error // that the body tells, if the call failed
	Err        error        // its cause, for the log and never for the caller
	RetryAfter int          // seconds; 0: the answer says nothing of it
	Replayed   bool         // it was given before
	Streamed   bool         // its Tail was opened
	Secret     bool         // it may hold what opens something
	Limit      *limit.State // of the bucket that runs out first, if the caller is told
	Actor      policy.Actor // the caller, as far as it was found out

	buffer *bytes.Buffer
}

// Free gives the memory of the body back. Nothing reads the body after that. It
// need not be called.
func (a *Answer) Free() {
	if a.buffer != nil {
		buffers.Put(a.buffer)
		a.buffer, a.Body = nil, nil
	}
}
