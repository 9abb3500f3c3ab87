// Package op is where a capability lives: one row (id, method, path, rule) and
// one handler, func(ctx, In) (Out, error). The REST route, the checks of its
// input, the OpenAPI operation, the tool of MCP and the problem documents all
// follow from the row and the two types; nothing is listed twice. It imports no
// domain, names nothing of the product and knows no HTTP server: a Pipeline
// carries out a Call, and a surface (api/rest, api/mcp, a test) makes Calls and
// hands on Answers.
//
// Where a field of In travels follows from the row: a name in the path is a
// path parameter, otherwise it is a query parameter of GET and DELETE, and a
// member of the JSON body of everything else. A `header` tag names a request
// header. What a field must look like is said by tags: minLength, maxLength,
// pattern, enum, minimum, maximum, maxItems, default, doc. A tag says, beside a
// pattern, is what a value that does not match is told. Two more are for the
// document alone: format (uuid, uri, email, date-time), and example, where name
// and checks do not suggest one. A blank
// member with the tag also:"query" may be sent there instead. A blank
// field `_ struct{}` bears the doc of the struct itself; its tag schema, where
// it has one, is the type's name in the document. A body field is
// required unless it is a pointer or has omitempty or omitzero;
// required:"true" makes a pointer required, though it may be null.
//
// row.go has the row, op.go its constructors and what callers may ask of an op,
// shape.go and checks.go what tags say of inputs, call.go what a surface brings
// and takes away, pipeline.go the steps of a call; bind.go, decode.go and
// arguments.go read the inputs, answer.go, problem.go and stream.go write what
// is answered, once.go and answers.go keep it for retries, limits.go counts,
// page.go is about collections.
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

// Raw makes a row at which another surface listens: a call of it is handed over
// whole, before any step was taken, and the surface goes the steps itself, with
// Admit and Serve, once or for each of the calls that the body holds.
func Raw(r Row, serve func(ctx context.Context, p *Pipeline, c *Call) Answer) Op {
	o := define[None](r)
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

// IsRaw tells whether another surface listens at the row.
func (o *Op) IsRaw() bool { return o.raw != nil }

// IsTool tells whether the op can be called with arguments and answers JSON: it
// is part of the API, asks for a credential, and is no stream.
func (o *Op) IsTool() bool {
	return strings.HasPrefix(o.Path, "/v1/") && !o.Rule.IsPublic() && o.raw == nil && o.stream == nil && o.Status < 400 &&
		o.output != replyType && o.output != assetType
}

// Changes tells whether the op is a write by the scopes it asserts, or by its
// method if it asserts none.
func (o *Op) Changes() bool {
	names := o.Rule.Names()
	for _, n := range names {
		if !strings.HasPrefix(n, "read:") && !strings.HasPrefix(n, "admin:read:") {
			return true
		}
	}
	return len(names) == 0 && Writes(o.Method)
}

// Writes tells whether a method of HTTP may change something.
func Writes(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS":
		return false
	}
	return true
}

// Shape is what the op takes.
func (o *Op) Shape() *Shape { return o.in }

// Output is the type of the answer of an op that is no stream.
func (o *Op) Output() reflect.Type { return o.output }

// AnswersReply tells whether the op answers a Reply, of which the type says
// nothing.
func (o *Op) AnswersReply() bool { return o.output == replyType }

// AnswersAsset tells whether the op answers an Asset.
func (o *Op) AnswersAsset() bool { return o.output == assetType }

// Input lists the published inputs: the name of each and whether it travels
// in the path, query, body or header.
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
	Required        bool
}

// Inputs are the published inputs but headers, in the order of In.
func (o *Op) Inputs() []Input {
	var out []Input
	for _, f := range o.in.Fields {
		if f.Where != InHeader {
			_, kind, _ := strings.Cut(kindName(f.Type), " ")
			if kind == "or false" {
				kind = "true or false"
			}
			doc := f.Tag.Get("doc")
			if e := f.Tag.Get("enum"); e != "" && doc == "" {
				doc = strings.ReplaceAll(e, ",", ", ")
			}
			out = append(out, Input{f.Name, kind, doc, f.Required})
		}
	}
	return out
}

// Kinds tells the Go type of each published input.
func (o *Op) Kinds() map[string]reflect.Type {
	m := make(map[string]reflect.Type, len(o.in.Fields))
	for _, f := range o.in.Fields {
		m[f.Name] = f.Type
	}
	return m
}
