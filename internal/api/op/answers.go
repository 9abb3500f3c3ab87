package op

import (
	"bytes"
	"context"
)

type (
	encodeKey struct{}
	outKey    struct{}
)

// Answers prepares the context of the transaction that carries out a write: when the
// transaction ends, *out is the answer of the row. A Ledger can then keep the answer
// in the same transaction, so that no crash comes between the two.
func Answers[O any](ctx context.Context, out *O) context.Context {
	if ctx.Value(encodeKey{}) == nil {
		return ctx // the call has no key: its answer is not kept
	}
	return context.WithValue(ctx, outKey{}, func() any { return *out })
}

// Answered encodes the out that Answers was called with; ok is false if Answers was
// not called for ctx.
func Answered(ctx context.Context) (k Kept, ok bool, err error) {
	out, ok := ctx.Value(outKey{}).(func() any)
	if !ok {
		return k, false, nil
	}
	a := Answer{}
	if err = a.encode(ctx.Value(encodeKey{}).(*Op), out()); err != nil {
		return k, false, err
	}
	k = a.kept()
	k.Body = bytes.Clone(k.Body)
	a.Free()
	return k, true, nil
}

// answering returns a context from which Answered knows the op.
func answering(ctx context.Context, o *Op) context.Context {
	return context.WithValue(ctx, encodeKey{}, o)
}

// kept is the part of an answer that a Ledger remembers.
func (a *Answer) kept() Kept { return Kept{a.Status, a.ContentType, a.Body} }
