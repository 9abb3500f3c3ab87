package codehost

import "context"

// Urgency is for whom a call to a host is made. When a limit of the host runs low, the
// less urgent calls fail with *BusyError first.
type Urgency int

// Urgencies, the most urgent first. The zero value is that of a context without one.
const (
	ForPeople Urgency = iota - 1 // a person waits: approve, merge, reply
	ForRuns                      // work that is under way
	ForReviews
	ForSweeps // looks for what deliveries have missed
)

type urgencyKey struct{}

// WithUrgency is a context whose calls have an urgency.
func WithUrgency(ctx context.Context, u Urgency) context.Context {
	return context.WithValue(ctx, urgencyKey{}, u)
}

// UrgencyOf is the urgency of the calls of a context.
func UrgencyOf(ctx context.Context) Urgency {
	u, _ := ctx.Value(urgencyKey{}).(Urgency)
	return u
}
