package op

import (
	"context"
	"reflect"

	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Row is the published part of a capability.
type Row struct {
	ID      string // <group>.<verb>, the operationId
	Method  string
	Path    string // {x} is a path parameter and a field of In; {x...} takes the rest of the path
	Summary string
	Doc     string // more than the summary holds: effects, refusals, what happens next
	Done    string // the meaning of a success, where the type of the answer does not say it
	Group   string // the heading of the row in the tables of the contract
	Rule    policy.Rule
	Status  int       // of a success; 0: 200
	Also    []int     // further statuses of a success, which the answer may choose (see Statuser)
	Paging  *Paging   // for collections whose In embeds PageIn
	Refuses []Refusal // refusals besides those that every row has
	MaxBody int64     // the most bytes of a body; 0: 1 MiB
	Form    bool      // also takes application/x-www-form-urlencoded
	// NoXML is what is said of the member protocol for a body of XML, which is refused with 400;
	// empty: it is refused with 415, as any other body that is not JSON.
	NoXML   string
	Lenient bool    // ignores unknown inputs, as RFC 6749 and 7591 demand
	NoStore bool    // the answer holds a one-time secret
	Resume  bool    // of streams: a caller may send the id of its last frame
	Events  []Event // of streams: the frames
	Holder  *Holder // of public rows: the credential that they check themselves
	// Body and Lines are for the document, of rows that answer a Reply: a value of
	// the type of its JSON body, or of the type of each of its lines.
	Body, Lines any
	Takes       any // for the document, of Raw rows: a value of the type of the body
	// PerAddress is the most calls a minute from one address, in a bucket of the
	// path, besides the general bucket. Zero: the general bucket alone.
	PerAddress int
	// Resource is the path that describes the resource (RFC 9728). A 401 points
	// there.
	Resource string
	// Slash has the path answer with a slash at its end, too: clients of MCP add one, and follow
	// no redirect with a POST.
	Slash bool
	// AnyOrigin lets scripts of any site call the row, with a bearer token or
	// without a credential, never with a cookie.
	AnyOrigin bool
	// From are the pages in browsers that may send a request; requests of others
	// are refused with the fault cross-origin.
	From Origin
	// Again makes the answer to an input with errors instead of a problem: a form
	// with the values that were sent and their errors. in is a pointer to the In,
	// as far as it was read.
	Again func(ctx context.Context, in any, failure error) (Reply, error)
	// AdaptFault gives every refusal the members that the protocol of the row
	// demands.
	AdaptFault func(*fault.Error) *fault.Error
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
	Data any  // a value of the type of the data, which is sent as JSON
	ID   bool // the frame has an id, from which the stream can be resumed
}

// Holder is a bearer credential that belongs to no member. A public row checks it
// before the inputs of the call.
type Holder struct {
	Scheme string // its name among the document's security schemes
	Doc    string
	// Admit returns the context of the call, or the fault that refuses it. The
	// actor of that context names the holder to the Ledger: by its CredentialID,
	// and by the AccountID that it calls for, if any.
	Admit func(ctx context.Context, authorization string) (context.Context, error)
}

// Origin is the set of pages in browsers that may send a request. Programs send no
// Origin and pass.
type Origin uint8

const (
	// AnyPage lets the credential decide: with a cookie only our own pages may
	// write; a token can be sent only by a page that knows it.
	AnyPage Origin = iota
	// OwnPages are the pages of the addresses of this server.
	OwnPages
	// OwnForms are OwnPages whose forms carry a ticket that is sealed for the session of
	// the person who was shown the form. The ticket proves where the request comes from, so
	// that a cookie counts although the request does not tell its origin.
	OwnForms
	// KnownPages are OwnPages, the pages of the caller's own machine, and those that
	// the operator of the server has named.
	KnownPages
)

// Statuser lets an answer choose among the row's success statuses.
type Statuser interface{ StatusCode() int }

// Texter lets an answer be sent as a text. An empty content type is for one that is JSON.
type Texter interface {
	Text() (contentType, text string)
}

// None is an In or Out without fields.
type None struct{}

// Reply is the Out of rows whose answer is not one JSON value: pages for browsers,
// scripts, redirects, cookies. A Body that is a string or []byte is sent as it is, any
// other as JSON.
type Reply struct {
	Status      int
	ContentType string
	Header      map[string]string
	Cookies     []string // values of Set-Cookie
	Body        any
}

// Asset is an answer that does not change while the program runs: a document or a page.
// A surface may compress an Asset once and let clients cache it.
type Asset struct {
	ContentType string
	Policy      string // Content-Security-Policy of a page, empty for other things
	Cache       string // Cache-Control; empty: a client asks again after five minutes
	Header      map[string]string
	Body        []byte
	To          string // not empty: this caller is sent there instead
}

var (
	assetType = reflect.TypeFor[*Asset]()
	replyType = reflect.TypeFor[Reply]()
)
