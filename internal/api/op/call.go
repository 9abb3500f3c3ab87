package op

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// exchange is the request that a row with Inside set is serving.
type exchange struct {
	*server
	req *http.Request
	h   http.Header // of the response

	secretive atomic.Bool // the answer may hold a secret of a row that was called
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// Header answers a header of the request that a row with Inside set is serving.
func Header(ctx context.Context, name string) string {
	if x := exchangeOf(ctx); x != nil {
		return x.req.Header.Get(name)
	}
	return ""
}

// Charge takes a call that is no op, one that reads, off what the caller may
// do. It is for rows with Inside set.
func Charge(ctx context.Context) error {
	x := exchangeOf(ctx)
	return x.charge(x.h, policy.From(ctx), false, "")
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
	return len(names) == 0 && writes(o.Method)
}

// Call runs an op as the caller of the request that a row with Inside set is
// serving: limits, rule, checks, idempotency and the answer are those of its
// own route. The arguments travel as they would there. Replayed tells of an
// answer that was given before.
func (o *Op) Call(ctx context.Context, args map[string]jsontext.Value, conversation string) (a Answer, replayed bool) {
	x, actor := exchangeOf(ctx), policy.From(ctx)
	if o.secretive || o.NoStore {
		x.secretive.Store(true)
	}
	req, body, err := o.request(ctx, x.req, args)
	written := func(p *page) Answer {
		for _, name := range []string{"Retry-After", "Cache-Control"} {
			if v := p.header.Get(name); v != "" {
				x.h.Set(name, v)
			}
		}
		return p.answer()
	}
	refuse := func(err error) Answer {
		p := &page{header: http.Header{}}
		x.fail(p, req, o, ended(req, err))
		return written(p)
	}
	if err := x.charge(x.h, actor, o.Changes(), conversation); err != nil {
		return refuse(err), false
	}
	if err := o.Rule.Check(actor); err != nil {
		return refuse(err), false
	}
	if err != nil {
		return refuse(err), false
	}
	run := func(ctx context.Context) Answer {
		req := req.WithContext(x.answering(ctx, req, o))
		p := &page{header: http.Header{}}
		if err := x.run(p, req, o, func(in any) error {
			return o.fill(req, in, func(_ *http.Request, in any, e *errs) (map[string]bool, error) { return o.assign(body, in, e), nil })
		}); err != nil {
			return refuse(err)
		}
		return written(p)
	}
	use, sent, err := x.use(x.req, o, actor)
	switch {
	case err != nil:
		return refuse(err), false
	case !sent:
		return run(ctx), false
	}
	all, err := json.Marshal(args, json.Deterministic(true))
	if err != nil {
		return refuse(err), false
	}
	use.Print = fingerprint(actor.CredentialID, o.ID, string(all))
	if a, replayed, err = x.Ledger.Once(ctx, use, run); err != nil {
		return refuse(err), false
	}
	if replayed && a.ContentType == problemType {
		a.Body = again(x.h, a.Body, RequestOf(ctx).ID)
	}
	return a, replayed
}

// request is the one that would bring args to the op's own route, less its
// body, whose members stand beside it. What is no input of the op goes where it
// is refused. Headers are no arguments.
func (o *Op) request(ctx context.Context, outer *http.Request, args map[string]jsontext.Value) (req *http.Request, body map[string]jsontext.Value, err error) {
	req = (&http.Request{Method: o.Method, URL: &url.URL{Path: o.Path}, Header: http.Header{}, RemoteAddr: outer.RemoteAddr}).WithContext(ctx)
	var e errs
	query, body := url.Values{}, make(map[string]jsontext.Value, len(args))
	size := int64(0)
	for name, v := range args {
		f := o.in.byName[name]
		switch {
		case f == nil && o.in.body, f != nil && f.where == inBody:
			body[name] = v
			size += int64(len(name) + len(v))
		case f != nil && f.where == inPath:
			text, ok := scalar(v)
			if !ok {
				e.add(name, "must be "+kindName(f.Type))
			}
			req.SetPathValue(name, text)
			req.URL.Path = strings.NewReplacer("{"+name+"}", text, "{"+name+"...}", text).Replace(req.URL.Path)
		case v.Kind() == 'n': // as if it were left out
		case v.Kind() == '[' && f != nil && f.Type.Kind() == reflect.Slice:
			var list []jsontext.Value
			if err := json.Unmarshal(v, &list); err != nil {
				return req, nil, malformed(err)
			}
			for _, item := range list {
				text, ok := scalar(item)
				if !ok {
					e.add(name, "must be a list of strings")
				}
				query.Add(name, text)
			}
		default:
			text, ok := scalar(v)
			if !ok && f != nil {
				e.add(name, "must be "+kindName(f.Type))
			}
			query.Set(name, text)
		}
	}
	for i := range o.in.fields {
		if f := &o.in.fields[i]; f.where == inPath && args[f.name] == nil {
			e.add(f.name, "is required")
		}
	}
	req.URL.RawQuery = query.Encode()
	req.Body = http.NoBody
	switch {
	case e != nil:
		return req, nil, invalid(e)
	case size > o.MaxBody:
		return req, nil, o.tooLarge()
	}
	return req, body, nil
}

// scalar is how a value is spelled in a path or a query.
func scalar(v jsontext.Value) (string, bool) {
	switch v.Kind() {
	case '"':
		var s string
		err := json.Unmarshal(v, &s)
		return s, err == nil
	case '0', 't', 'f':
		return v.String(), true
	}
	return "", false
}

// Raw makes a capability that reads its JSON body itself.
func Raw(r Row, h func(ctx context.Context, body []byte) (Reply, error)) Op {
	o := define[None](r)
	o.in.body, o.in.need, o.raw = true, true, true
	o.output = replyType
	o.run = func(ctx context.Context, bind func(any) error) (any, error) {
		var body []byte
		if err := bind(&body); err != nil {
			return nil, err
		}
		return h(ctx, body)
	}
	return o
}

// bindRaw reads the body of a Raw op.
func (o *Op) bindRaw(req *http.Request, body *[]byte) error {
	if !isJSON(req) {
		return fault.New(fault.UnsupportedMedia, "", "The body must be application/json.")
	}
	var b bytes.Buffer
	err := o.read(req, &b)
	*body = b.Bytes()
	return err
}
