package homes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/fault"
)

// asked is the path, without the name of the call, of what nodes ask each other for.
const asked = "/node/host/"

// most bounds what is asked and answered: files, and texts of changes.
const most = 256 << 20

// none is the argument, or the answer, of a call that has none.
type none struct{}

// call is something that a node can ask the home of a repository for.
type call[A, R any] struct {
	name string
	do   func(context.Context, *builtin.Host, codehost.Repo, A) (R, error)
}

// question is a call on its way.
type question[A any] struct {
	Repo codehost.Repo
	Of   A
}

// reply is what comes back: an answer or a failure.
type reply[R any] struct {
	Answer  R
	Failure *failure
}

// failure is a fault on its way.
type failure struct {
	Kind         fault.Kind
	Slug, Detail string
	Fields       map[string][]string
	Extra        map[string]any
	After        time.Duration
	Cause        string // for the log of the node that asked
}

func failed(err error) *failure {
	f := fault.From(err)
	return &failure{Kind: f.Kind, Slug: f.Slug, Detail: f.Detail, Fields: f.Fields, Extra: f.Extra, After: f.RetryAfter, Cause: err.Error()}
}

func (f *failure) err(n Node) error {
	cause := fmt.Errorf("node %s: %s", n.ID, f.Cause)
	if f.Kind == fault.Internal {
		return cause
	}
	e := fault.New(f.Kind, f.Slug, f.Detail).Because(cause).After(f.After)
	e.Fields, e.Extra = f.Fields, f.Extra
	return e
}

// served are the calls by name.
var served = map[string]func(context.Context, *builtin.Host, io.Reader) any{}

// declare makes a call, which other nodes can ask this one for.
func declare[A, R any](name string, do func(context.Context, *builtin.Host, codehost.Repo, A) (R, error)) call[A, R] {
	served[name] = func(ctx context.Context, local *builtin.Host, body io.Reader) any {
		var q question[A]
		var out reply[R]
		err := json.NewDecoder(body).Decode(&q)
		if err == nil {
			out.Answer, err = do(ctx, local, q.Repo, q.Of)
		}
		if err != nil {
			out = reply[R]{Failure: failed(err)}
		}
		return out
	}
	return call[A, R]{name, do}
}

// at makes a call at the home of a repository.
func at[A, R any](ctx context.Context, h *Host, c call[A, R], r codehost.Repo, of A) (out R, err error) {
	n, here, err := h.home(ctx, r)
	if err != nil {
		return out, err
	}
	return on(ctx, h, n, here, c, r, of)
}

// on makes a call here or at a node.
func on[A, R any](ctx context.Context, h *Host, n Node, here bool, c call[A, R], r codehost.Repo, of A) (out R, err error) {
	if here {
		return c.do(ctx, h.Local, r, of)
	}
	if n, err = h.live(n); err != nil {
		return out, err
	}
	body, err := json.Marshal(question[A]{r, of})
	if err != nil {
		return out, err
	}
	ctx, done := h.while(ctx, n)
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+n.Door+asked+c.name, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	resp, err := h.roads.RoundTrip(req)
	if err != nil {
		return out, h.unreached(ctx, n, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return out, fmt.Errorf("node %s answers %s to %s: it may run another version", n.ID, resp.Status, c.name)
	}
	var got reply[R]
	if err := json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&got); err != nil {
		return out, h.unreached(ctx, n, err)
	}
	if got.Failure != nil {
		return out, got.Failure.err(n)
	}
	return got.Answer, nil
}

// unreached says why a node has not answered: the caller's context ended, or the node is down.
func (h *Host) unreached(ctx context.Context, n Node, err error) error {
	var away *fault.Error
	if ctx.Err() != nil && !errors.As(context.Cause(ctx), &away) {
		return ctx.Err()
	}
	return down(n).Because(err)
}

// answer serves the calls of other nodes.
func (h *Host) answer(w http.ResponseWriter, r *http.Request) {
	do := served[r.PathValue("call")]
	if do == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(do(r.Context(), h.Local, http.MaxBytesReader(w, r.Body, most))); err != nil {
		h.Logger.Warn("another node was not answered", "call", r.PathValue("call"), "error", err)
	}
}
