package op

import (
	"context"
	"reflect"

	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Row is the visible part of a capability.
type Row struct {
	ID      string // <group>.<verb>, the operationId
	Method  string
	Path    string // {x} is a path parameter and a field of In; {x...} takes the rest of the path
	Summary string
	Doc     string // what the summary cannot hold: what it does, when it refuses, what happens next
	Done    string // what a success means, where the answer's type does not say
	Group   string // the heading of the contract's tables that it stands under
	Rule    policy.Rule
	Status  int       // on success, 200 when zero
	Also    []int     // further success statuses the answer may choose (see Statuser)
	Paging  *Paging   // for collections whose In embeds PageIn
	Refuses []Refusal // what it refuses beyond the statuses every row shares
	MaxBody int64     // bytes of the body, 1 MiB when zero
	Form    bool      // also takes application/x-www-form-urlencoded
	Lenient bool      // inputs that it does not know are ignored, as RFC 6749 and 7591 demand
	NoStore bool      // the answer holds a one-time secret
	Resume  bool      // streams: the id of the last frame is understood
	Events  []Event   // streams: the frames that it sends
	Holder  *Holder   // of public rows: the credential that they check themselves
	// Of rows that answer a Reply, for the document: a value of the type that
	// is its JSON body, or one of each of its lines.
	Body, Lines any
	Takes       any // of Raw rows, for the document: a value of the type of the body
	// PerAddress is how often a minute one address may call, in a bucket of the
	// path's own besides the general one. Zero: the general one alone.
	PerAddress int
	// Resource is the path that describes the resource (RFC 9728). A 401 points
	// there.
	Resource string
	// AnyOrigin lets scripts of any site call the row, with a bearer token or
	// with nothing, never with a cookie.
	AnyOrigin bool
	// From is which pages in browsers may send a request; others get 403
	// cross-origin.
	From Origin
	// Again answers when the input cannot be used, in the place of the problem:
	// a form with what was typed and what is wrong with it. In is a pointer to
	// the In, as far as it was read.
	Again func(ctx context.Context, in any, failure error) (Reply, error)
	// Recast adds to every refusal what a protocol of its own demands of it.
	Recast func(*fault.Error) *fault.Error
}

// Refusal is a published way to fail.
type Refusal struct {
	Status int
	Slug   string
}

// Event is a kind of frame of a stream.
type Event struct {
	Name string
	Doc  string
	Data any  // a value of the type that data is JSON of
	ID   bool // it has an id, at which the stream can be taken up again
}

// Holder is a bearer credential that is none of an account's members, and that
// a public row looks at before it looks at anything else of the call.
type Holder struct {
	Scheme string // its name among the document's security schemes
	Doc    string
	// Admit answers the context in which the holder calls, or why it may not.
	// The actor in there names the holder to those who keep answers: its
	// CredentialID, and the AccountID it calls for, if any.
	Admit func(ctx context.Context, authorization string) (context.Context, error)
}

// Origin is which pages in browsers may send a request. Programs say nothing of
// where they come from, and are let through.
type Origin uint8

const (
	// AnyPage leaves it to the credential: a cookie is good for writes of our
	// own pages only, a token is something the page has itself.
	AnyPage Origin = iota
	// OwnPages are those of the server's own addresses.
	OwnPages
	// OwnForms are OwnPages, and the sender must say so: what a person decides
	// with a cookie is taken from no program.
	OwnForms
	// KnownPages are those of the server's own addresses, those on the caller's
	// own machine, and those that the operator of the server has named.
	KnownPages
)

// Statuser lets an answer choose among the row's success statuses.
type Statuser interface{ StatusCode() int }

// None is an In or Out without fields.
type None struct{}

// Reply is the Out of rows that answer something other than one JSON value:
// pages for browsers, scripts, redirects, cookies. Body is sent as it is when
// it is a string or []byte, else as JSON.
type Reply struct {
	Status      int
	ContentType string
	Header      map[string]string
	Cookies     []string // values of Set-Cookie
	Body        any
}

// Asset is an answer that does not change while the program runs: a document or
// a page. A surface may compress it once and let its callers keep it.
type Asset struct {
	ContentType string
	Policy      string // Content-Security-Policy of a page, empty for other things
	Body        []byte
}

var (
	assetType = reflect.TypeFor[*Asset]()
	replyType = reflect.TypeFor[Reply]()
)
