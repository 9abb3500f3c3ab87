// Package command carries out what people ask for in comments on pull requests at their
// hosts: a line that begins with the name of the server and a verb. Only people who may
// write to the repository are heard, each comment once, as it was delivered first; edits
// and comments of programs are not read.
//
//   - command.go: the types, and what becomes of a comment
//   - parse.go: which comments ask for something
//   - words.go: what is said in answer
//   - answer.go: how an answer gets to its place
//   - store.go: the rows
package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
)

// Verbs of commands.
const (
	Review  = "review"  // has agents review the head
	Rebase  = "rebase"  // has an agent bring the base into the branch
	Fix     = "fix"     // has agents look after the pull request
	Stop    = "stop"    // has them leave it alone
	Explain = "explain" // asks how it stands
)

// States of a command.
const (
	Done         = "done"
	Declined     = "declined"      // the pull request is not in a state for it
	NotPermitted = "not_permitted" // its author may not write
	Silenced     = "silenced"      // too much was said in its thread
)

// Limits of a thread: after mostAnswers answers in perThread no command is carried out
// there, and a person is asked to look.
const (
	mostAnswers = 10
	perThread   = time.Hour
	maxBody     = 64 << 10 // bytes of a comment that are read and kept
)

// Asker is somebody who asks for something.
type Asker struct {
	Label  string // for the record: user:<id>, or code-host:<login>
	UserID string // of a member of the account; "" if it is not known who it is
	Barred bool   // a member whose role does not allow it
}

// Work is what other domains do for a command. All are of tx.Account, and fail with a
// fault, before they change anything, if the pull request is not in a state for it.
type Work interface {
	// Asker names somebody at a host.
	Asker(tx *db.Tx, host string, who codehost.User) (Asker, error)
	// ByNumber finds a pull request by its number in a repository.
	ByNumber(tx *db.Tx, repoID string, number int64) (prID string, ok bool, err error)
	// CatchUp records a pull request that its host has and the server does not know. It
	// is called outside of transactions.
	CatchUp(ctx context.Context, r repo.Ref, number int64) error
	// Review begins the review of the head.
	Review(tx *db.Tx, r repo.Ref, prID string, by Asker) error
	// Rebase begins a round that brings the base into the branch.
	Rebase(tx *db.Tx, prID string) error
	// Fix has agents look after the pull request.
	Fix(tx *db.Tx, prID string, by Asker) error
	// Stop has agents leave it alone.
	Stop(tx *db.Tx, prID string, by Asker) error
	// Facts tells how it stands.
	Facts(tx *db.Tx, prID string) (Facts, error)
	// Raise asks a person to look at a thread in which too much was said.
	Raise(tx *db.Tx, repoID, prID string) error
}

// Names tells what people call the server by.
type Names interface {
	// At are the names at a host, without the @.
	At(host string) []string
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hosts   *codehost.Hosts
	Intents *intent.Service
	Logger  *slog.Logger
	Work    Work
	Names   Names
}

// Service carries commands out.
type Service struct{ Needs }

// New makes a Service of n, and has its answers carried to their places. It panics if a
// required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{n}
	sayAtHost.Handle(n.Intents, sayer{})
	return s
}

// Said reads a comment, and does what it asks for; false if that is nothing. It fails with
// the errors of the host that pass; then the caller calls it again.
func (s *Service) Said(ctx context.Context, r repo.Ref, e codehost.Commented) (bool, error) {
	who := e.Comment.Author
	if !e.Pull || e.Deleted || e.Action != codehost.ActionCreated || e.Comment.ID == "" || who.Login == "" || who.Bot || who.Own ||
		e.By.Bot || e.By.Own || !strings.EqualFold(e.By.Login, who.Login) {
		return false, nil
	}
	body := e.Comment.Body[:min(len(e.Comment.Body), maxBody)]
	verb, ok := Parse(body, s.Names.At(r.HostRepo().Host))
	if !ok {
		return false, nil
	}
	c := row{
		ID: id.New(), RepoID: r.ID, CommentKey: "issue:" + e.Comment.ID, Place: e.Thread, Login: strings.ToLower(who.Login), Verb: verb,
		Body: strings.ReplaceAll(strings.ToValidUTF8(body, ""), "\x00", ""),
	}
	if e.Thread != "" {
		c.CommentKey = "line:" + e.Comment.ID
	}
	return true, s.hear(ctx, r, e, c)
}

// hear carries out a command that was not read before.
func (s *Service) hear(ctx context.Context, r repo.Ref, e codehost.Commented, c row) error {
	known, err := s.known(ctx, &c, e.Number)
	if err != nil || known {
		return err
	}
	if c.PRID == "" { // the delivery that tells of the pull request may come later
		if err := s.Work.CatchUp(ctx, r, e.Number); err != nil {
			return err
		}
		if _, err := s.known(ctx, &c, e.Number); err != nil || c.PRID == "" {
			return err
		}
	}
	may, err := s.mayAsk(ctx, r, e.Comment.Author.Login)
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		now := c
		return s.carryOut(tx, r, e, &now, may)
	})
}

// known tells whether a comment was read before, and finds the pull request of c.
func (s *Service) known(ctx context.Context, c *row, number int64) (known bool, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if known, err = seen.One(tx, c.RepoID, c.CommentKey); err != nil || known {
			return err
		}
		prID, _, err := s.Work.ByNumber(tx, c.RepoID, number)
		c.PRID = prID
		return err
	})
	return known, err
}

// mayAsk asks the host whether somebody may write to a repository. What the host does not
// say is no.
func (s *Service) mayAsk(ctx context.Context, r repo.Ref, login string) (bool, error) {
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return false, err
	}
	may, err := forge.Permission(codehost.WithUrgency(ctx, codehost.ForPeople), r.HostRepo(), login)
	if _, busy := errors.AsType[*codehost.BusyError](err); busy {
		return false, fmt.Errorf("ask what the author of a command may do: %w", err)
	}
	return err == nil && may >= codehost.PermitWrite, nil
}

// carryOut does what a command asks for, and answers it.
func (s *Service) carryOut(tx *db.Tx, r repo.Ref, e codehost.Commented, c *row, may bool) error {
	who, err := s.Work.Asker(tx, r.HostRepo().Host, e.Comment.Author)
	if err != nil {
		return err
	}
	c.AccountID, c.CreatedAt = tx.Account, tx.Now
	if !may || who.Barred {
		c.State = NotPermitted // and nothing is said: a stranger could have us talk
		return s.record(tx, *c, who)
	}
	said, err := answers.One(tx, answersArgs{AccountID: tx.Account, PRID: c.PRID, Place: c.Place, Since: tx.Now.Add(-perThread)})
	if err != nil {
		return err
	}
	if said.Answers >= mostAnswers {
		c.State = Silenced
		if said.Silenced == 0 {
			if err := s.Work.Raise(tx, r.ID, c.PRID); err != nil {
				return err
			}
		}
		return s.record(tx, *c, who)
	}
	c.State = Done
	c.Answer, err = s.do(tx, r, *c, who)
	if f, refused := errors.AsType[*fault.Error](err); refused && f.Kind != fault.Internal {
		c.State, c.Answer, err = Declined, declined(f.Detail), nil
	}
	if err != nil {
		return err
	}
	if err := s.record(tx, *c, who); err != nil {
		return err
	}
	_, err = sayAtHost.Put(tx, intent.Want[sayArgs]{
		Repo: r, Object: c.PRID, Rank: intent.ForPeople,
		Args: sayArgs{Number: e.Number, Comment: e.Comment.ID, OnLines: e.Thread != "", Text: c.Answer},
	})
	return err
}

// do does what a command asks for, and returns what is said of it.
func (s *Service) do(tx *db.Tx, r repo.Ref, c row, who Asker) (string, error) {
	switch c.Verb {
	case Review:
		return wordsReview, s.Work.Review(tx, r, c.PRID, who)
	case Rebase:
		return wordsRebase, s.Work.Rebase(tx, c.PRID)
	case Fix:
		return wordsFix, s.Work.Fix(tx, c.PRID, who)
	case Stop:
		return wordsStop, s.Work.Stop(tx, c.PRID, who)
	}
	f, err := s.Work.Facts(tx, c.PRID)
	return explain(f), err
}

// record stores a command, and its event.
func (s *Service) record(tx *db.Tx, c row, who Asker) error {
	n, err := insert.Exec(tx, c)
	if err != nil {
		return err
	}
	if n == 0 {
		return errTwice
	}
	return givenEvent.Record(tx, event.Subject{ID: c.ID, RepoID: c.RepoID},
		givenData{By: who.Label, Login: c.Login, PRID: c.PRID, State: c.State, Verb: c.Verb})
}

// errTwice undoes the transaction of a comment that another node has read meanwhile. The
// caller calls Said again, which finds the comment known.
var errTwice = errors.New("another node reads the same comment")
