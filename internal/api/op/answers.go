package op

import (
	"context"
	"net/http"
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
func Answered(ctx context.Context) (a Answer, ok bool, err error) {
	out, ok := ctx.Value(outKey{}).(func() any)
	if !ok {
		return a, false, nil
	}
	encode := ctx.Value(encodeKey{}).(func(any) (Answer, error))
	a, err = encode(out())
	return a, err == nil, err
}

// answering lets Answered know how the row answers.
func (s *server) answering(ctx context.Context, req *http.Request, o *Op) context.Context {
	return context.WithValue(ctx, encodeKey{}, func(out any) (Answer, error) {
		p := &page{header: http.Header{}}
		err := s.answer(p, req, o, out)
		return p.answer(), err
	})
}
