package creation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

const (
	// hold is how long the call that asks for a repository has it for itself; then a node
	// goes on with it.
	hold = time.Minute
	// shortest and longest bound the wait before the next try.
	shortest = time.Second
	longest  = 5 * time.Minute
	// lifetime is after how long a creation is given up that the host does not let
	// through.
	lifetime = 24 * time.Hour
	// stepTime is how long the calls of one try may take.
	stepTime = 50 * time.Second
	// atOnce is how many a node goes on with at the same time.
	atOnce = 4
)

// topic is notified when a creation has ended.
const topic = "repo-creations"

// errTaken says that somebody else has gone on with a creation.
var errTaken = errors.New("creation: another node has it")

func load(tx *db.Tx, key string) (c row, ok bool, err error) {
	c, ok, err = byID.Maybe(tx, tx.Account, key)
	c.late = tx.Now.Sub(c.CreatedAt) >= lifetime
	return c, ok && (c.State == asked || c.State == made), err
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// goOn goes on with a creation whose call was cut off, or has failed.
func (s *Service) goOn(ctx context.Context, j due.Job[row]) due.Outcome {
	c := j.Row
	c.again = true
	end, final, err := s.work(ctx, &c)
	if err == nil {
		return due.Done(end)
	}
	if !errors.Is(err, errTaken) {
		observe.Complain(ctx, s.Logger, "make the repository "+c.at().String(), err)
	}
	if final || c.late {
		return due.Done(func(tx *db.Tx) error { return s.fail(tx, c, err) })
	}
	o := due.Again(err)
	if busy, is := errors.AsType[*codehost.BusyError](err); is {
		o = due.Again(due.Later(err, min(busy.After, longest)))
	}
	return o.With(func(tx *db.Tx) error { return note(tx, c, err) })
}

// first takes a creation as far as the call that asked for it can. An error with final ended
// it; after any other one, a node goes on with it.
func (s *Service) first(ctx context.Context, c row) (final bool, err error) {
	end, final, err := s.work(ctx, &c)
	if err == nil {
		if err = s.ours(ctx, c, end); err == nil {
			return true, nil
		}
	}
	if errors.Is(err, errTaken) {
		return false, err
	}
	failure := err
	err = s.ours(context.WithoutCancel(ctx), c, func(tx *db.Tx) error {
		if final {
			return s.fail(tx, c, failure)
		}
		s.queue.Add(tx, c.ID, due.Entry{Account: tx.Account, After: shortest})
		return note(tx, c, failure)
	})
	if errors.Is(err, errTaken) {
		return false, failure // what became of it is the node's to say
	}
	return final, errors.Join(failure, err)
}

// ours records what a call did, unless a node has gone on with its creation by then.
func (s *Service) ours(ctx context.Context, c row, record func(*db.Tx) error) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		at, waits, err := s.queue.State(tx, c.ID)
		if err == nil && (!waits || at.State == due.Held) {
			err = errTaken
		}
		if err != nil {
			return err
		}
		return record(tx)
	})
}

// work takes a creation as far as it goes, but for the last change of its row, which it
// answers. An error that is final says that another try would fail as well.
func (s *Service) work(ctx context.Context, c *row) (end func(*db.Tx) error, final bool, err error) {
	call, cancel := context.WithTimeout(codehost.WithUrgency(ctx, codehost.ForPeople), stepTime)
	defer cancel()
	if c.State == asked {
		info, err := s.produce(call, *c)
		if err != nil {
			return nil, definite(err), err
		}
		if *c, err = s.know(call, *c, info); err != nil {
			return nil, false, err
		}
	}
	end, err = s.begin(call, *c)
	return end, false, err
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
		n, err := setMade.Exec(tx, madeArgs{AccountID: tx.Account, ID: c.ID, HostRepoID: info.Repo.ID, RepoID: repoID})
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
		if errors.Is(err, codehost.ErrExists) && c.again {
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
	if c.again {
		once = codehost.Once(c.ID)
	}
	// The name of an owner may be another's by now, who has installed the App as well.
	info.Repo, err = forge.CreateRepo(ctx, c.Owner, once, codehost.NewRepo{
		Name: c.Name, Description: c.Description, Private: c.Private, Installation: c.InstallationID,
	})
	return info, err
}

// begin makes the first commit. What it answers queues the task that sets the repository up.
func (s *Service) begin(ctx context.Context, c row) (end func(*db.Tx) error, err error) {
	host, err := s.Hosts.Of(c.at())
	if err != nil {
		return nil, err
	}
	info, err := host.Info(ctx, c.at())
	if err != nil {
		return nil, err
	}
	files, programs, err := render(c.Name, c.Description)
	if err != nil {
		return nil, err
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
		return nil, err
	default:
		if err := s.Repos.Wrote(ctx, info.Repo, branch, sha, c.CreatedBy); err != nil {
			return nil, err
		}
	}
	return func(tx *db.Tx) error {
		taskID, note, err := s.Setups.Begin(tx, Setup{RepoID: *c.RepoID, UserID: c.UserID, Description: c.Description, Stack: c.Stack})
		if err != nil {
			return err
		}
		d := doneArgs{AccountID: tx.Account, ID: c.ID, CommitSHA: sha, Note: note, Now: tx.Micros()}
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
		s.over(tx, c)
		return createdEvent.Record(tx, event.Subject{ID: *c.RepoID, RepoID: *c.RepoID}, told)
	}, nil
}

// over tells who waits that a creation has ended.
func (s *Service) over(tx *db.Tx, c row) {
	s.queue.Drop(tx, c.ID)
	s.Hub.Notify(tx, topic)
}

// fail ends a creation.
func (s *Service) fail(tx *db.Tx, c row, failure error) error {
	n, err := setFailed.Exec(tx, failedArgs{AccountID: tx.Account, ID: c.ID, Note: brief(failure), Now: tx.Micros()})
	if err != nil || n == 0 {
		return err
	}
	s.over(tx, c)
	if c.State == asked && !c.again {
		return nil // a call that was refused
	}
	return FailedEvent.Record(tx, event.Subject{ID: c.ID}, failedData{Repo: c.at().String(), Host: c.Host, Why: brief(failure)})
}

// note notes why the last try of a creation failed.
func note(tx *db.Tx, c row, failure error) error {
	_, err := setNote.Exec(tx, tx.Account, c.ID, brief(failure))
	return err
}

// brief is the text of an error for people.
func brief(err error) string {
	text := fault.From(err).Detail
	return text[:min(len(text), 500)]
}
