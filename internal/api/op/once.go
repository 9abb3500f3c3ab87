package op

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// Use is one use of an Idempotency-Key. Print is a digest of the call that the key is
// bound to: credential, method, path and body.
type Use struct{ Account, Key, Print string }

// Kept is the part of an answer that a Ledger remembers.
type Kept struct {
	Status      int
	ContentType string
	Body        []byte
}

// Ledger remembers the answers to writes that came with an Idempotency-Key.
type Ledger interface {
	// Once calls run, or returns the answer that it remembers for the use;
	// replayed is true then. In the transactions of run, Answered may know the
	// answer beforehand. Answers with a status of 500 or more are not
	// remembered. If another call with the same use is running, Once waits for
	// its answer. Once fails with fault.Conflict if the key is bound to another
	// call, or if the running call does not end.
	Once(ctx context.Context, u Use, run func(context.Context) Kept) (k Kept, replayed bool, err error)
}

// KeyHeader is the header that holds a key.
const KeyHeader = "Idempotency-Key"

// Keyed tells whether a row understands Idempotency-Key. A row that anonymous callers
// may call does not: a key would show one caller the answer to another.
func (o *Op) Keyed() bool {
	known := !o.Rule.IsPublic() || o.Holder != nil
	return known && Writes(o.Method) && strings.HasPrefix(o.Path, "/v1/") && !o.NoStore && o.raw == nil && o.stream == nil
}

// use reads the key of a call; keyed is false if the call has none or the row
// understands none. use fails with fault.Invalid.
func (p *Pipeline) use(c *Call, a policy.Actor) (u Use, keyed bool, err error) {
	if len(c.Keys) == 0 || p.Ledger == nil || !c.Op.Keyed() {
		return u, false, nil
	}
	key := c.Keys[0]
	if len(c.Keys) > 1 || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7e }) || key == "" {
		return u, false, fault.Field(KeyHeader, "must be 1 to 255 characters of printable ASCII")
	}
	return Use{Account: a.AccountID, Key: key}, true, nil
}

// fingerprint digests the parts that a key is bound to. Each part is preceded by its
// length, so that no two lists of parts have the same digest.
func fingerprint(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// print digests the parts of the call that its key is bound to. It reads the body and
// puts it back. It fails as read does.
func (c *Call) print(a policy.Actor) (string, error) {
	if c.Arguments != nil {
		all, err := json.Marshal(c.Arguments, json.Deterministic(true))
		return fingerprint(a.CredentialID, c.Op.ID, string(all)), err
	}
	var body bytes.Buffer
	if err := c.read(&body); err != nil {
		return "", err
	}
	parts := append([]string{a.CredentialID}, c.Bound...)
	print := fingerprint(append(parts, body.String())...)
	c.Body = &body
	return print, nil
}

// once answers a call that has a key.
func (p *Pipeline) once(ctx context.Context, c *Call, actor policy.Actor, u Use) (a Answer) {
	var err error
	if u.Print, err = c.print(actor); err != nil {
		return p.Refuse(c, err)
	}
	kept, replayed, err := p.Ledger.Once(ctx, u, func(ctx context.Context) Kept {
		a = p.run(answering(ctx, c.Op), c)
		return a.kept()
	})
	if err != nil {
		return p.Refuse(c, ended(ctx, err))
	}
	if replayed {
		a = p.answer(c)
		a.Status, a.ContentType, a.Body, a.Replayed = kept.Status, kept.ContentType, kept.Body, true
		if a.ContentType == ProblemType {
			observe.Of(ctx).Slug = a.again(c.Request.ID)
		}
	}
	return a
}
