// Package talk is what people say about a pull request: comments on the whole and on lines,
// answers to them, and requests for changes. A request holds the merge, and an agent is given
// its words; a comment begins nothing. What is said about a pull request that its code host
// keeps is shown there, and what is said there is shown here.
//
//   - talk.go: the types, limits, and what a pull request is asked for
//   - request.go: requests for changes
//   - comment.go: comments, and how a thread ends
//   - hosted.go, elsewhere.go: what a code host is told, and what it tells
//   - ops.go, events.go: capabilities, events
//   - store.go: the statements
package talk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
)

// Limits of what is said, in bytes unless they say otherwise.
const (
	maxBody     = 16 << 10
	maxRequest  = 48 << 10 // all texts of a request together
	maxNotes    = 50       // comments on lines of a request
	maxThread   = 64 << 10
	maxComments = 50 // of a thread
)

// State is the state of a thread.
type State string

// States of a thread.
const (
	Open     = "open"
	Resolved = "resolved"
)

// Values lists all states.
func (State) Values() []string { return []string{Open, Resolved} }

// Pull is a pull request as a conversation about it needs it.
type Pull struct {
	ID, RepoID, HeadSHA string
	Number              int64
}

// Words are what a person requests about a head.
type Words struct{ ID, PRID, HeadSHA, Text string }

// Pulls is what a conversation asks of pull requests. All are of tx.Account.
type Pulls interface {
	// Get reads a pull request; false if there is none.
	Get(tx *db.Tx, prID string) (Pull, bool, error)
	// At locks an open pull request, at a head unless that is "". It fails with
	// fault.NotFound, and with the reasons head_moved and pr_not_open.
	At(tx *db.Tx, prID, headSHA string) (Pull, error)
	// Request has a pull request held, and its words answered by an agent. It fails as At.
	Request(tx *db.Tx, w Words) error
	// TakeBack ends the requests of the actor, or the one with an id, and answers their ids.
	// It fails with fault.NotFound and fault.Forbidden, and with the reasons pr_not_open and
	// no_request.
	TakeBack(tx *db.Tx, prID, requestID string) ([]string, error)
	// Hunks reads the lines of a file that a pull request shows at a head; false if the file
	// has not changed. It fails as At, and with the reason commits_gone.
	Hunks(ctx context.Context, prID, headSHA, path string) ([]codehost.Hunk, bool, error)
	// Name is what people call whoever a label names.
	Name(tx *db.Tx, label string) (string, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hosts   *codehost.Hosts
	Intents *intent.Service
	Pulls   Pulls
}

// Service has the capabilities of conversations.
type Service struct{ Needs }

// New makes a Service of n, and has what is said carried to code hosts. It panics if a field
// of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{n}
	postKind.Handle(n.Intents, poster{})
	sayKind.Handle(n.Intents, sayer{})
	resolveKind.Handle(n.Intents, resolver{})
	return s
}

// Thread is a thread as the API shows it.
type Thread struct {
	_           struct{}       `doc:"What is said about one thing in a pull request." schema:"PullRequestThread"`
	ID          string         `json:"id" example:"0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the thread; of one at a code host, its name there"`
	PRID        string         `json:"pr_id" format:"uuid" doc:"the pull request"`
	RequestID   *string        `json:"request_id" example:"null" doc:"the request for changes that it is part of; null: none, or it is at a code host"`
	Path        *string        `json:"path" example:"web/footer.go" doc:"the file; null: it is about the whole"`
	Line        *int           `json:"line" example:"12" doc:"the line; null: it is about the whole, or the line is gone"`
	Side        *codehost.Side `json:"side" example:"RIGHT" doc:"LEFT: a line that the change deletes; null without a file"`
	HeadSHA     *string        `json:"head_sha" doc:"the head in which the line counts; null: the present one, at a code host"`
	State       State          `json:"state" doc:"whether it waits for an answer"`
	ResolvedBy  *string        `json:"resolved_by" example:"null" doc:"who has resolved it; null: nobody, or a head has"`
	ResolvedSHA *string        `json:"resolved_sha" example:"null" doc:"the head that answers it; null without one"`
	ResolvedAt  *time.Time     `json:"resolved_at" example:"null" doc:"when it was resolved; null while it is open, or if nobody knows"`
	Comments    []Comment      `json:"comments" doc:"oldest first, at most 50"`
	CreatedAt   time.Time      `json:"created_at" doc:"when it began"`
}

// Comment is a comment as the API shows it.
type Comment struct {
	_         struct{}  `doc:"One text of a thread." schema:"PullRequestComment"`
	ID        string    `json:"id" doc:"id of the comment"`
	Author    string    `json:"author" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who says it: user:<id>, or code-host:<login>"`
	Body      string    `json:"body" example:"Take the year from the clock of the server." doc:"the text, Markdown"`
	URL       *string   `json:"url" example:"null" doc:"address at the code host; null: it is here alone"`
	CreatedAt time.Time `json:"created_at" doc:"when it was said"`
}

// place is where a comment stands; the zero place is the whole.
type place struct {
	Path, Side string
	Line       int
}

// onLines tells whether a line and a side are given with a path, and nothing without one;
// field begins the name of what is wrong.
func (p *place) check(field string) error {
	switch {
	case p.Path == "" && p.Line == 0 && p.Side == "":
		return nil
	case p.Path == "":
		return fault.Field(field+"path", "is required with a line")
	case p.Line == 0:
		return fault.Field(field+"line", "is required with a path")
	}
	if p.Side == "" {
		p.Side = codehost.SideHead
	}
	return nil
}

// checkPlaces fails with a fault on the field of the first place that the diff of a head does
// not show.
func (s *Service) checkPlaces(ctx context.Context, prID, headSHA string, all []place, field func(i int) string) error {
	type change struct {
		hunks []codehost.Hunk
		any   bool
	}
	known := map[string]change{}
	for i, p := range all {
		if p.Path == "" {
			continue
		}
		c, read := known[p.Path]
		if !read {
			var err error
			if c.hunks, c.any, err = s.Pulls.Hunks(ctx, prID, headSHA, p.Path); err != nil {
				return err
			}
			known[p.Path] = c
		}
		switch {
		case !c.any:
			return fault.Field(field(i)+"path", "is no file that the pull request changes")
		case !shows(c.hunks, p):
			return fault.Field(field(i)+"line", "is no line that the diff shows on this side")
		}
	}
	return nil
}

// shows tells whether a line is in a hunk.
func shows(hunks []codehost.Hunk, p place) bool {
	for _, h := range hunks {
		from, n := h.NewStart, h.NewLines
		if p.Side == codehost.SideBase {
			from, n = h.OldStart, h.OldLines
		}
		if p.Line >= from && p.Line < from+n {
			return true
		}
	}
	return false
}

// checkBody fails with a fault on a field if a text is empty or too long.
func checkBody(field, body string) error {
	switch {
	case strings.TrimSpace(body) == "":
		return fault.Field(field, "must have a text")
	case len(body) > maxBody:
		return fault.Field(field, fmt.Sprintf("must have at most %d bytes", maxBody))
	}
	return nil
}
