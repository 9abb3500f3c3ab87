// Package op is where a capability lives: one row (id, method, path, rule) and
// one handler, func(ctx, In) (Out, error). The REST route, the checks of its
// input, the OpenAPI operation and the problem documents all follow from the
// row and the two types; nothing is listed twice. It imports no domain.
//
// Where a field of In travels follows from the row: a name in the path is a
// path parameter, otherwise it is a query parameter of GET and DELETE, and a
// member of the JSON body of everything else. A `header` tag names a request
// header. What a field must look like is said by tags: minLength, maxLength,
// pattern, enum, minimum, maximum, maxItems, default, doc. Two more are for the
// document alone: format (uuid, uri, email, date-time), and example, where name
// and checks do not suggest one. A blank
// member with the tag also:"query" may be sent there instead. A blank
// field `_ struct{}` bears the doc of the struct itself. A body field is
// required unless it is a pointer or has omitempty or omitzero;
// required:"true" makes a pointer required, though it may be null.
package op

import (
	"context"
	"reflect"
	"strings"

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
	Resume  bool      // streams: Last-Event-ID is understood
	Events  []Event   // streams: the frames that it sends
	Holder  *Holder   // of public rows: the credential that they check themselves
	// Of rows that answer a Reply, for the document: a value of the type that
	// is its JSON body, or one of each of its lines.
	Body, Lines any
	Takes       any // of Raw rows, for the document: a value of the type of the body
	// PerAddress is how often a minute one address may call, in a bucket of the
	// path's own besides the general one. Zero: the general one alone.
	PerAddress int
	// Inside marks a row that runs others with Call, which are charged to the
	// caller's limits; itself it is not.
	Inside bool
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
	ID   bool // it has an id, for Last-Event-ID
}

// Holder is a bearer credential that is none of an account's members, and that
// a public row looks at before it looks at anything else of the request.
type Holder struct {
	Scheme string // its name among the document's security schemes
	Doc    string
	// Admit answers the context in which the holder calls, or why it may not.
	// The actor in there names the holder to those who keep answers: its
	// CredentialID, and the AccountID it calls for, if any.
	Admit func(ctx context.Context, authorization string) (context.Context, error)
}

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

// Op is a row with its handler, ready to be served.
type Op struct {
	Row
	in     *shape
	input  reflect.Type
	output reflect.Type
	run    func(ctx context.Context, bind func(any) error) (any, error)
	raw    bool // the body is the handler's business
	// secretive tells that an answer may hold what opens something.
	secretive bool
	stream    func(ctx context.Context, bind func(any) error, s *Sink) error
}

// New makes a capability that answers once.
func New[I, O any](r Row, h func(context.Context, I) (O, error)) Op {
	o := define[I](r)
	o.output = reflect.TypeFor[O]()
	o.secretive = tells(o.output, map[reflect.Type]bool{})
	o.run = func(ctx context.Context, bind func(any) error) (any, error) {
		var in I
		if err := bind(&in); err != nil {
			if r.Again != nil && fault.IsKind(err, fault.Invalid) {
				return r.Again(ctx, &in, err)
			}
			return nil, err
		}
		out, err := h(ctx, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	return o
}

// Stream makes a capability that answers with server-sent events. An error
// before the first frame is an ordinary problem.
func Stream[I any](r Row, h func(context.Context, I, *Sink) error) Op {
	o := define[I](r)
	o.stream = func(ctx context.Context, bind func(any) error, s *Sink) error {
		var in I
		if err := bind(&in); err != nil {
			return err
		}
		return h(ctx, in, s)
	}
	return o
}

func define[I any](r Row) Op {
	if r.Status == 0 {
		r.Status = 200
	}
	if r.MaxBody == 0 {
		r.MaxBody = 1 << 20
	}
	t := reflect.TypeFor[I]()
	return Op{Row: r, input: t, in: inputShape(&r, t)}
}

// IsStream tells whether the op answers with server-sent events.
func (o *Op) IsStream() bool { return o.stream != nil }

// Input lists the published inputs: the name of each and whether it travels
// in the path, query, body or header.
func (o *Op) Input() map[string]string {
	m := make(map[string]string, len(o.in.fields))
	for _, f := range o.in.fields {
		m[f.name] = f.where.String()
	}
	return m
}

// Input describes a published input for people.
type Input struct {
	Name, Kind, Doc string
	Required        bool
}

// Inputs are the published inputs but headers, in the order of In.
func (o *Op) Inputs() []Input {
	var out []Input
	for _, f := range o.in.fields {
		if f.where != inHeader {
			_, kind, _ := strings.Cut(kindName(f.Type), " ")
			if kind == "or false" {
				kind = "true or false"
			}
			doc := f.Tag.Get("doc")
			if e := f.Tag.Get("enum"); e != "" && doc == "" {
				doc = strings.ReplaceAll(e, ",", ", ")
			}
			out = append(out, Input{f.name, kind, doc, f.required})
		}
	}
	return out
}

// Kinds tells the Go type of each published input.
func (o *Op) Kinds() map[string]reflect.Type {
	m := make(map[string]reflect.Type, len(o.in.fields))
	for _, f := range o.in.fields {
		m[f.name] = f.Type
	}
	return m
}
