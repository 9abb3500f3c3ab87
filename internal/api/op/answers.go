package op

import (
	"bytes"
	"context"
)

type (
	encodeKey struct{}
	outKey    struct{}
)

// Answers prepares the context of the transaction with which a write is done:
// at its end out is what the row will answer. A Ledger can then keep the answer
// in the same transaction, so that no crash comes between the two.
func Answers[O any](ctx context.Context, out *O) context.Context {
	if ctx.Value(encodeKey{}) == nil {
		return ctx // nobody keeps it
	}
	return context.WithValue(ctx, outKey{}, func() any { return *out })
}

// Answered is the answer that Answers tells of; false if that was not called.
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

// answering lets Answered know which op answers.
func answering(ctx context.Context, o *Op) context.Context {
	return context.WithValue(ctx, encodeKey{}, o)
}

// kept is what a Ledger remembers of an answer.
func (a *Answer) kept() Kept { return Kept{a.Status, a.ContentType, a.Body} }
