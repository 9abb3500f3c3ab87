package creation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	// hold is how long one node has a creation for; then another one goes on with it.
	hold = time.Minute
	// sweep is the time between two searches for due creations without a notice.
	sweep = 5 * time.Second
	// shortest and longest bound the wait before the next try.
	shortest = time.Second
	longest  = 5 * time.Minute
	// lifetime is after how long a creation is given up that the host does not let
	// through.
	lifetime = 24 * time.Hour
	// stepTime is how long the calls of one try may take.
	stepTime = 50 * time.Second
)

// topic is notified when a creation is due, or has ended.
const topic = "repo-creations"

// errTaken says that another node has gone on with a creation.
var errTaken = errors.New("creation: another node has it")

// Loop goes on with creations that were cut off, until ctx ends. Several nodes may run
// Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "creations.sweep", topic, sweep, s.Pass)
	return nil
}

// Pass goes on with the creations that are due.
func (s *Service) Pass(ctx context.Context) {
	for ctx.Err() == nil {
		due, err := s.take(ctx)
		if err != nil {
			observe.Complain(ctx, s.Logger, "take the repositories that are to be made", err)
		}
		if err != nil || len(due) == 0 {
			return
		}
		for _, c := range due {
			if _, err := s.work(db.WithAccount(ctx, c.AccountID), c); err != nil && !errors.Is(err, errTaken) {
				observe.Complain(ctx, s.Logger, "make the repository "+c.at().String(), err)
			}
		}
	}
}

func (s *Service) take(ctx context.Context) ([]row, error) {
	return db.Claim(ctx, s.DB, anyDue, func(tx *db.Tx) ([]row, error) {
		return takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)))
	})
}

// work takes a creation as far as it goes. An error with final ends it; after any other
// one, the loop goes on with it.
func (s *Service) work(ctx context.Context, c row) (final bool, err error) {
	call, cancel := context.WithTimeout(codehost.WithUrgency(ctx, codehost.ForPeople), stepTime)
	defer cancel()
	if c.State == asked {
		info, err := s.produce(call, c)
		if err != nil {
			return s.stop(ctx, c, err, definite(err))
		}
		if c, err = s.know(call, c, info); err != nil {
			return s.stop(ctx, c, err, false)
		}
	}
	if err := s.begin(call, c); err != nil {
		return s.stop(ctx, c, err, false)
	}
	return true, nil
}

// definite tells whether an error says that the host has made nothing, and will not.
func definite(err error) bool {
	if busy, is := errors.AsType[*codehost.BusyError](err); is {
		return busy.Limit // other failures may have come after the repository was made
	}
	return fault.From(err).Kind != fault.Internal || errors.Is(err, codehost.ErrCannot) || errors.Is(err, codehost.ErrUnknownHost)
}

// know makes a repository known that the host has made.
func (s *Service) know(ctx context.Context, c row, info codehost.RepoInfo) (row, error) {
	known := func(tx *db.Tx) error {
		repoID, err := repo.Adopt(tx, info, c.InstallationID)
		if err != nil {
			return err
		}
		n, err := setMade.Exec(tx, madeArgs{AccountID: tx.Account, ID: c.ID, HostRepoID: info.Repo.ID, RepoID: repoID, Tries: c.Tries})
		if err == nil && n == 0 {
			err = errTaken
		}
		c.State, c.HostRepoID, c.RepoID = made, info.Repo.ID, &repoID
		return err
	}
	err := s.DB.Write(ctx, known)
	if db.IsUnique(err) { // a delivery of the host, or a first push, came in between
		err = s.DB.Write(ctx, known)
	}
	return c, err
}

// produce has the host make the repository. A repository of the name is taken for the one
// that is wanted if an earlier try may have made it, and nobody has written to it.
func (s *Service) produce(ctx context.Context, c row) (codehost.RepoInfo, error) {
	info := codehost.RepoInfo{Repo: c.at(), DefaultBranch: "main", Private: c.Private, Description: c.Description}
	git, err := s.Hosts.Git(c.at())
	if err != nil {
		return info, err
	}
	if git == nil { // the server itself is the host
		host, err := s.Hosts.Of(c.at())
		if err != nil {
			return info, err
		}
		err = host.Create(ctx, c.at(), codehost.CreateOptions{DefaultBranch: info.DefaultBranch, Private: c.Private})
		if errors.Is(err, codehost.ErrExists) && c.Tries > 1 {
			there, failure := host.Info(ctx, c.at())
			if failure == nil && there.Empty {
				err = nil
			}
		}
		return info, err
	}
	forge, err := s.Hosts.Forge(c.at())
	if err != nil {
		return info, err
	}
	var once codehost.Once
	if c.Tries > 1 {
		once = codehost.Once(c.ID)
	}
	// The name of an owner may be another's by now, who has installed the App as well.
	info.Repo, err = forge.CreateRepo(ctx, c.Owner, once, codehost.NewRepo{
		Name: c.Name, Description: c.Description, Private: c.Private, Installation: c.InstallationID,
	})
	return info, err
}

// begin makes the first commit and queues the task that sets the repository up.
func (s *Service) begin(ctx context.Context, c row) error {
	host, err := s.Hosts.Of(c.at())
	if err != nil {
		return err
	}
	info, err := host.Info(ctx, c.at())
	if err != nil {
		return err
	}
	files, programs, err := render(c.Name, c.Description)
	if err != nil {
		return err
	}
	branch := cmp.Or(info.DefaultBranch, "main")
	sha, err := host.FirstCommit(ctx, info.Repo, codehost.FirstOptions{
		Branch: branch, Files: files, Programs: programs, Title: "Begin " + c.Name,
		Body:   fmt.Sprintf("The files of the base %s, version %d.", baseName, c.Base),
		Author: s.Author, Committer: s.Author, At: c.CreatedAt,
	})
	switch {
	case errors.Is(err, codehost.ErrHeadMoved):
		sha = "" // a person was faster, and their commit stays
	case err != nil:
		return err
	default:
		if err := s.Repos.Wrote(ctx, info.Repo, branch, sha, c.CreatedBy); err != nil {
			return err
		}
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		taskID, note, err := s.Setups.Begin(tx, Setup{RepoID: *c.RepoID, UserID: c.UserID, Description: c.Description, Stack: c.Stack})
		if err != nil {
			return err
		}
		d := doneArgs{AccountID: tx.Account, ID: c.ID, CommitSHA: sha, Note: note, Tries: c.Tries, Now: tx.Micros()}
		told := createdData{Repo: info.Repo.String(), Host: c.Host, Template: baseName, Version: c.Base}
		if taskID != "" {
			d.TaskID, told.TaskID = &taskID, &taskID
		}
		if sha != "" {
			told.CommitSHA = &sha
		}
		n, err := setDone.Exec(tx, d)
		if err == nil && n == 0 {
			err = errTaken
		}
		if err != nil {
			return err
		}
		s.Hub.Notify(tx, topic)
		return createdEvent.Record(tx, event.Subject{ID: *c.RepoID, RepoID: *c.RepoID}, told)
	})
}

// stop ends a creation, or puts it off. It answers the error that it is given.
func (s *Service) stop(ctx context.Context, c row, failure error, final bool) (bool, error) {
	if errors.Is(failure, errTaken) {
		return false, failure
	}
	err := s.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		final = final || tx.Now.Sub(c.CreatedAt) >= lifetime
		if !final {
			wait := min(shortest<<min(c.Tries-1, 10), longest)
			if busy, is := errors.AsType[*codehost.BusyError](failure); is {
				wait = max(wait, min(busy.After, longest))
			}
			_, err := again.Exec(tx, againArgs{
				AccountID: tx.Account, ID: c.ID, Note: brief(failure), Tries: c.Tries, DueAt: db.Micros(tx.Now.Add(wait)),
			})
			return err
		}
		n, err := setFailed.Exec(tx, failedArgs{AccountID: tx.Account, ID: c.ID, Note: brief(failure), Tries: c.Tries, Now: tx.Micros()})
		if err != nil || n == 0 {
			return err
		}
		s.Hub.Notify(tx, topic)
		if c.State == asked && c.Tries == 1 {
			return nil // a call that was refused
		}
		return FailedEvent.Record(tx, event.Subject{ID: c.ID}, failedData{Repo: c.at().String(), Host: c.Host, Why: brief(failure)})
	})
	return final, errors.Join(failure, err)
}

// brief is the text of an error for people.
func brief(err error) string {
	text := fault.From(err).Detail
	return text[:min(len(text), 500)]
}
