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

// Call is one call of an op, as a surface makes it. A Call is used once.
type Call struct {
	Op        *Op // nil if no op is called; Refused has the reason
	Request   Request
	Presented Presented
	// Refused is the fault with which the surface refuses the call; nil if the
	// surface takes it. The call is counted for its address before.
	Refused error
	// Changes counts the call as a write. Conversation names the conversation of
	// the caller that the write is counted for.
	Changes      bool
	Conversation string
	// Keys are the values of Idempotency-Key; more than one is refused. Bound are
	// the parts of the call that the surface binds the key to, besides the
	// credential and the body: the method and the address as they were sent.
	Keys, Bound []string

	// Path is the path that is called, which a problem names. With Arguments, the
	// path is made from them.
	Path string
	Sent
	// Arguments are all inputs but headers in one flat object. They replace Sent.
	Arguments map[string]jsontext.Value

	// Tail takes the frames of a stream. Last is the id of the last frame that the
	// caller received.
	Tail Tail
	Last string

	query     url.Values                // of Arguments
	members   map[string]jsontext.Value // of the body, of Arguments
	malformed error                     // why Arguments are no input of the op
	actor     policy.Actor
	state     limit.State
	counted   bool
	sink      *Sink
}

// Sent are the inputs of a call in the places that HTTP has for them.
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

// Header returns a header of the call, empty if the call has no such header.
func (c *Call) Header(name string) string {
	if c.Texts == nil {
		return ""
	}
	return c.Texts.Header(name)
}

// Param returns a parameter of the path of a call of a Raw op, as it was sent.
func (c *Call) Param(name string) string { return c.path(name) }

func (c *Call) path(name string) string {
	if c.Texts == nil {
		return ""
	}
	return c.Texts.Path(name)
}

// JSON reads the whole body of a call of a Raw op. It fails with
// fault.UnsupportedMedia for a body that is not JSON, with fault.TooLarge for more
// bytes than Row.MaxBody, and with fault.Invalid for a body that breaks off.
func (c *Call) JSON() ([]byte, error) {
	if !isJSON(c.ContentType) {
		return nil, fault.New(fault.UnsupportedMedia, "", "The body must be application/json.")
	}
	var b bytes.Buffer
	if c.Length > 0 { // the length is what the caller says: no more is taken on its word than a small body has
		b.Grow(int(min(c.Length, smallBody)) + bytes.MinRead)
	}
	err := c.read(&b)
	return b.Bytes(), err
}

// smallBody is the size up to which memory for a body is made at once, in bytes.
const smallBody = 16 << 10

// Request is the part of a call that a handler may know besides its input.
type Request struct {
	ID      string
	IP      string // of the caller, past trusted proxies
	BaseURL string
	Home    string // path of the dashboard; empty: there is none
	Secure  bool   // the call came over https, or BaseURL is https
	Query   string // of the address, as it came
	Bare    bool   // no credential came with the call, good or bad
}

type requestKey struct{}

// Context returns ctx with the request of the call and its maker, as a handler has it.
func (c *Call) Context(ctx context.Context, actor policy.Actor) context.Context {
	return policy.With(context.WithValue(ctx, requestKey{}, &c.Request), actor)
}

// RequestOf returns the request that ctx belongs to, empty outside of a call.
func RequestOf(ctx context.Context) Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return *r
	}
	return Request{}
}

// Presented are the credentials of a call, and the facts by which they are judged.
type Presented struct {
	Bearer     string // a token
	Session    string // the session of a browser, from its cookie
	Account    string // the account that the call is about, by id or login; sessions only
	SameOrigin bool   // a browser says that one of our own pages sends the call
	Came       string // where the call came from and to, for the text of a refusal
	Write      bool   // the method changes things
}

// authorization is the header Authorization as Holder.Admit is given it.
func (p Presented) authorization() string {
	if p.Bearer == "" {
		return ""
	}
	return "Bearer " + p.Bearer
}

// Answer is the answer to a call.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte // valid until Free; empty for a stream, which its Tail has
	Header      map[string]string
	Cookies     []string // values of Set-Cookie
	Asset       *Asset   // the asset that the body is of, if any

	Failure    *fault.Error // the fault that the body tells; nil if the call succeeded
	Err        error        // the cause of Failure, for the log and never for the caller
	RetryAfter int          // seconds; 0: the answer has no such header
	Replayed   bool         // the answer was given before, for the same key
	Streamed   bool         // the Tail of the call was opened
	Secret     bool         // the answer may hold a secret, such as a token
	Limit      *limit.State // of the bucket that runs out first; nil: the caller is not told
	Actor      policy.Actor // the caller, as far as it is known

	buffer *bytes.Buffer
}

// Encoded tells whether the body is JSON that this package has encoded.
func (a *Answer) Encoded() bool { return a.buffer != nil || a.Failure != nil }

// Free gives the memory of the body back. The body must not be read afterwards. A
// caller need not call Free.
func (a *Answer) Free() {
	if a.buffer != nil {
		buffers.Put(a.buffer)
		a.buffer, a.Body = nil, nil
	}
}
