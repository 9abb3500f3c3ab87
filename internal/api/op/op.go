// Package op is where a capability lives: one row (id, method, path, rule) and
// one handler, func(ctx, In) (Out, error). The REST route, the checks of its
// input, the OpenAPI operation, the tool of MCP and the problem documents all
// follow from the row and the two types; nothing is listed twice. It imports no
// domain, names nothing of the product and knows no HTTP server: a Pipeline
// carries out a Call, and a surface (api/rest, api/mcp, a test) makes Calls and
// hands on Answers.
//
// The row decides where a field of In travels. A field that the path names is a path
// parameter. Any other field is a query parameter of GET and DELETE, and a member of
// the JSON body of other methods. A `header` tag names a request header. A member with
// the tag also:"query" may be sent in the query instead.
//
// These tags limit the values of a field: minLength, maxLength, pattern, enum, minimum,
// maximum, maxItems, and format:"email". A tag says, beside a pattern, is the message for a
// value that does not match. A type of strings with a method Values limits its fields to
// those, and a tag or adds one more. The tag default is the value of a query parameter that is not
// sent, and doc describes the field. Two more tags are for the document alone: format (uuid,
// uri, date-time, decimal), and example, where name and checks do not suggest one. A tag known names a list of the
// document's whose values the field may have, beside others. A blank
// field `_ struct{}` bears the doc of the struct itself; its tag schema, if it has one,
// is the name of the type in the document. A body field is required unless it is a
// pointer or has omitempty or omitzero; required:"true" makes a pointer required,
// though it may be null.
//
//	row.go        the row
//	op.go         its constructors, and the properties of an op
//	shape.go      the inputs, compiled from the tags; checks.go their checks
//	call.go       the calls that a surface makes, and the answers that it gets
//	pipeline.go   the steps of a call; limits.go and held.go count calls, note.go records them
//	bind.go       reads the inputs; decode.go from a body, arguments.go from one object
//	answer.go     writes answers; problem.go failures, stream.go streams, wire.go the JSON
//	once.go       keeps answers for retries; answers.go with the transaction of a write
//	page.go       collections
//	accept.go     whether a caller prefers a page for people
package op

import (
	"context"
	"reflect"
	"strings"

	"yardmaster/internal/fault"
)

// Op is a row with its handler, ready to be called.
type Op struct {
	Row
	in     *Shape
	input  reflect.Type
	output reflect.Type
	run    func(ctx context.Context, bind func(any) error) (any, error)
	stream func(ctx context.Context, bind func(any) error, s *Sink) error
	raw    func(ctx context.Context, p *Pipeline, c *Call) Answer
}

// New makes a capability that answers once.
func New[I, O any](r Row, h func(context.Context, I) (O, error)) Op {
	o := define[I](r)
	o.output = reflect.TypeFor[O]()
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

// Stream makes a capability that answers with server-sent events. If h fails before the
// first frame, the answer is an ordinary problem.
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

// Raw makes a capability whose calls another surface serves. The Pipeline hands a call
// to serve before the first step; the surface takes the steps itself with Admit and
// Serve, once or for each of the calls in the body.
func Raw(r Row, serve func(ctx context.Context, p *Pipeline, c *Call) Answer) Op {
	return RawAt[None](r, serve)
}

// RawAt is Raw for a path with parameters, which are the fields of I. The surface reads
// them with Call.Param.
func RawAt[I any](r Row, serve func(ctx context.Context, p *Pipeline, c *Call) Answer) Op {
	o := define[I](r)
	o.in.Body, o.in.Need, o.raw = true, true, serve
	o.output = replyType
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

// waits tells whether a call may wait for news, as its caller says: it is limited as streams are.
func (o *Op) waits() bool { return o.in.byName["wait_ms"] != nil }

// lasts tells whether a call of the op may stay open for long: a stream, or one that waits for news.
func (o *Op) lasts() bool { return o.stream != nil || o.waits() }

// IsRaw tells whether another surface serves the calls of the row, see Raw.
func (o *Op) IsRaw() bool { return o.raw != nil }

// IsTool tells whether the op can be called with Arguments and answers JSON: the op is
// part of the API, needs a credential, and is no stream.
func (o *Op) IsTool() bool {
	return strings.HasPrefix(o.Path, "/v1/") && !o.Rule.IsPublic() && o.raw == nil && o.stream == nil && o.Status < 400 &&
		o.output != replyType && o.output != assetType && !o.Rule.NeedsSession()
}

// Changes tells whether the op is a write: by the scopes that its rule requires, or by
// its method if the rule requires none.
func (o *Op) Changes() bool {
	names := o.Rule.Names()
	for _, n := range names {
		if !strings.HasPrefix(n, "read:") && !strings.HasPrefix(n, "admin:read:") {
			return true
		}
	}
	return len(names) == 0 && Writes(o.Method)
}

// Writes tells whether an HTTP method may change anything: it is not GET, HEAD or
// OPTIONS.
func Writes(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS":
		return false
	}
	return true
}

// Shape is the shape of the inputs of the op.
func (o *Op) Shape() *Shape { return o.in }

// Output is the type of the answer of an op that is no stream.
func (o *Op) Output() reflect.Type { return o.output }

// AnswersReply tells whether the op answers a Reply, whose type does not describe the
// answer.
func (o *Op) AnswersReply() bool { return o.output == replyType }

// AnswersAsset tells whether the op answers an Asset.
func (o *Op) AnswersAsset() bool { return o.output == assetType }

// Input returns the place of each published input by its name: path, query, body or
// header.
func (o *Op) Input() map[string]string {
	m := make(map[string]string, len(o.in.Fields))
	for _, f := range o.in.Fields {
		m[f.Name] = f.Where.String()
	}
	return m
}

// Input describes a published input for people.
type Input struct {
	Name, Kind, Doc string
	Values          []string // it may have; none: any
	Unit            string   // of a number: seconds
	Required        bool
}

// Inputs lists the published inputs but headers, in the order of In.
func (o *Op) Inputs() []Input {
	var out []Input
	for _, f := range o.in.Fields {
		if f.Where != InHeader {
			_, kind, _ := strings.Cut(kindName(f.Type), " ")
			if kind == "or false" {
				kind = "true or false"
			}
			doc, values := f.Tag.Get("doc"), Values(f.StructField)
			if p := o.Paging; p != nil && f.Name == "filter" {
				doc += ", of " + strings.Join(p.keys(), "; ")
			} else if p != nil && f.Name == "sort" {
				values = p.Sorts
			}
			if len(values) > 0 {
				if doc != "" {
					doc += "; one of "
				}
				doc += strings.Join(values, ", ")
			}
			out = append(out, Input{f.Name, kind, doc, values, f.Tag.Get("unit"), f.Required})
		}
	}
	return out
}

// Kinds returns the Go type of each published input by its name.
func (o *Op) Kinds() map[string]reflect.Type {
	m := make(map[string]reflect.Type, len(o.in.Fields))
	for _, f := range o.in.Fields {
		m[f.Name] = f.Type
	}
	return m
}
