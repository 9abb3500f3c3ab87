// Package measure is the one home of what is counted about the work: what was merged, failed,
// checked and spent, and what waits for people. Pages, digests and the console of operators read
// it here, so that a number means the same wherever it stands. It owns no rows.
//
// What a word means is a condition, once (words.go); the statements are made of them.
//
//   - words.go: what counts as merged, failed, open, waiting
//   - store_pulls.go, store_tasks.go, store_money.go, store_waiting.go: of an account
//   - store_health.go, store_authored.go: how well a repository does
//   - store_templates.go, store_lanes.go: how well templates do
//   - store_platform.go: of the whole server
package measure

import "time"

// Span is a time, from From up to To, which is not in it. A zero To is the end of time.
type Span struct{ From, To time.Time }

// Since is the time from then on.
func Since(from time.Time) Span { return Span{From: from} }

// end is To, or a time behind all others.
func (s Span) end() time.Time {
	if s.To.IsZero() {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return s.To
}

// Rate is how often something went well: N of D. With D 0 there was nothing.
type Rate struct{ N, D int64 }

// spanArgs are the parameters of statements about an account and a time.
type spanArgs struct {
	AccountID    string
	FromAt, ToAt time.Time
}

// repoArgs are spanArgs of one repository.
type repoArgs struct {
	spanArgs
	RepoID string
}

// listArgs are spanArgs with the most rows.
type listArgs struct {
	spanArgs
	Most int
}

func of(account string, s Span) spanArgs {
	return spanArgs{AccountID: account, FromAt: s.From, ToAt: s.end()}
}
