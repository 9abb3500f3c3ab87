// Package op is where a capability lives: one row (id, method, path, rule) and
// one handler, func(ctx, In) (Out, error). The REST route, the checks of its
// input, the OpenAPI operation and the problem documents all follow from the
// row and the two types; nothing is listed twice. It imports no domain.
//
// Where a field of In travels follows from the row: a name in the path is a
// path parameter, otherwise it is a query parameter of GET and DELETE, and a
// member of the JSON body of everything else. A `header` tag names a request
// header. What a field must look like is said by tags: minLength, maxLength,
// pattern, enum, minimum, maximum, maxItems, default, doc; example is what the
// document shows of it, where its name and the checks do not suggest one. A body field is
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
	Group   string // the tag; the group of the contract's tables
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
	// Recast adds to every refusal what a protocol of its own demands of it.
	Recast func(*fault.Error) *fault.Error
}

// Refusal is a published way to fail.
type Refusal struct {
	Status int
	Slug   string
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
	stream func(ctx context.Context, bind func(any) error, s *Sink) error
}

// New makes a capability that answers once.
func New[I, O any](r Row, h func(context.Context, I) (O, error)) Op {
	o := define[I](r)
	o.output = reflect.TypeFor[O]()
	o.run = func(ctx context.Context, bind func(any) error) (any, error) {
		var in I
		if err := bind(&in); err != nil {
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
