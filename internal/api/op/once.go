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

// Use is one use of an Idempotency-Key. Print is a digest of what the key is
// bound to: credential, method, path and body.
type Use struct{ Account, Key, Print string }

// Kept is an answer as it is remembered.
type Kept struct {
	Status      int
	ContentType string
	Body        []byte
}

// Ledger remembers the answers to writes that came with an Idempotency-Key.
type Ledger interface {
	// Once runs what the use stands for, or answers what it was answered
	// before, which replayed tells. In the transactions of run, Answered may
	// tell what the answer will be. Answers of 500 and up are not remembered.
	// A twin in flight is waited for. It fails with 409 for a key that stands
	// for something else, or whose twin does not end.
	Once(ctx context.Context, u Use, run func(context.Context) Kept) (k Kept, replayed bool, err error)
}

// KeyHeader is the header that a key travels in.
const KeyHeader = "Idempotency-Key"

// Keyed tells whether a row understands Idempotency-Key. Where anybody may call,
// a key would show one caller what another was answered.
func (o *Op) Keyed() bool {
	known := !o.Rule.IsPublic() || o.Holder != nil
	return known && Writes(o.Method) && strings.HasPrefix(o.Path, "/v1/") && !o.NoStore && o.raw == nil && o.stream == nil
}

// use reads the key of a call, if it has one that the row understands.
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

// fingerprint digests what a key is bound to. Lengths keep the parts apart.
func fingerprint(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// print digests what the key of a call is bound to. It reads the body, which is
// there again after that.
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

// once answers a call with a key.
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
		return p.Refuse(c, err)
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
