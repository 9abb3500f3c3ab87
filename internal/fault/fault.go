// Package fault is the closed set of ways in which a request can fail. A domain makes
// a fault with New. The edges (REST, MCP, OAuth) turn it into their wire forms
// through one table. The cause is kept for the log and never sent.
package fault

import (
	"errors"
	"fmt"
	"maps"
	"syscall"
	"time"
)

// Kind decides the HTTP status of a fault.
type Kind uint8

// The kinds. Internal is the zero value: an error without a kind is an internal one.
const (
	Internal Kind = iota
	Invalid
	Unauthenticated
	PaymentRequired
	Forbidden
	NotFound
	MethodNotAllowed
	Conflict
	Gone
	TooLarge
	UnsupportedMedia
	Unprocessable
	RateLimited
	Unavailable
	StorageFull
)

var kinds = [...]struct {
	status      int
	slug, title string
}{
	Internal:         {500, "internal", "Internal error"},
	Invalid:          {400, "invalid", "Invalid request"},
	Unauthenticated:  {401, "unauthenticated", "Authentication required"},
	PaymentRequired:  {402, "payment-required", "Plan does not cover this"},
	Forbidden:        {403, "forbidden", "Not allowed"},
	NotFound:         {404, "not-found", "Not found"},
	MethodNotAllowed: {405, "method-not-allowed", "Method not allowed"},
	Conflict:         {409, "conflict", "Conflicts with the current state"},
	Gone:             {410, "gone", "No longer available"},
	TooLarge:         {413, "too-large", "Too large"},
	UnsupportedMedia: {415, "unsupported-media-type", "Unsupported media type"},
	Unprocessable:    {422, "unprocessable", "Cannot be processed"},
	RateLimited:      {429, "rate-limited", "Too many requests"},
	Unavailable:      {503, "unavailable", "Temporarily unavailable"},
	StorageFull:      {507, "storage-full", "No room left"},
}

// Status returns the HTTP status of the kind.
func (k Kind) Status() int { return kinds[k].status }

// Slug returns the slug of the kind, for errors that have none of their own.
func (k Kind) Slug() string { return kinds[k].slug }

// Title returns the title of the kind, a text for people.
func (k Kind) Title() string { return kinds[k].title }

// Kinds lists all kinds, for tables and documentation.
func Kinds() []Kind {
	out := make([]Kind, len(kinds))
	for i := range out {
		out[i] = Kind(i)
	}
	return out
}

// Error is a failure that may be shown to the caller. Slug, Detail, Fields and Extra
// are sent; the wrapped cause is not. Errors are values: With, Because and After
// return copies.
type Error struct {
	Kind       Kind
	Slug       string              // stable, the last segment of the problem type
	Detail     string              // about this occurrence, for people
	Fields     map[string][]string // dotted path of an input field -> what is wrong; "" is the whole request
	Extra      map[string]any      // further members of the problem
	RetryAfter time.Duration
	onPurpose  bool
	cause      error
}

// New makes an error. If slug is empty, the error has the slug of its kind.
func New(k Kind, slug, detail string) *Error {
	if slug == "" {
		slug = k.Slug()
	}
	return &Error{Kind: k, Slug: slug, Detail: detail}
}

// Newf is New with a format.
func Newf(k Kind, slug, format string, a ...any) *Error {
	return New(k, slug, fmt.Sprintf(format, a...))
}

// Missing returns the same fault for unknown ids and for ids of other accounts.
func Missing(what string) *Error { return Newf(NotFound, "", "There is no such %s.", what) }

// Field returns a validation error about one input field, given by its dotted path.
func Field(path, message string) *Error {
	e := New(Invalid, "", "The request has invalid fields.")
	e.Fields = map[string][]string{path: {message}}
	return e
}

// Reason returns a fault.Conflict whose slug is also its member reason.
func Reason(slug, detail string) *Error {
	return New(Conflict, slug, detail)
}

func (e *Error) Error() string {
	s := e.Slug + ": " + e.Detail
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is match on kind and slug.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Slug == e.Slug
}

// With returns a copy that carries one more member on the wire.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Extra = maps.Clone(e.Extra)
	if c.Extra == nil {
		c.Extra = map[string]any{}
	}
	c.Extra[key] = value
	return &c
}

// Because returns a copy that keeps the cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// After returns a copy that tells how long to wait before the next try.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// OnPurpose returns a copy for a refusal with which nothing has failed, although its kind is
// one of failures: a limit was reached.
func (e *Error) OnPurpose() *Error {
	c := *e
	c.onPurpose = true
	return &c
}

// Deliberate tells whether the error is one of OnPurpose.
func (e *Error) Deliberate() bool { return e.onPurpose }

// Full returns a StorageFull because a disk of the server has no space left.
func Full(cause error) *Error {
	return New(StorageFull, "", "The server has no room left to store this; nothing was changed. Its "+
		"operator has to make room.").Because(cause)
}

// From returns the fault in err. For an error without one it returns StorageFull if a
// disk had no space left, and otherwise Internal. Then err is the cause, and the
// detail shows nothing of it.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return Full(err)
	}
	return New(Internal, "", "Something went wrong on our side. The request id helps us find it.").Because(err)
}

// IsKind tells whether err is a fault of kind k.
func IsKind(err error, k Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}
