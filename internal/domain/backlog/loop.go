package backlog

import (
	"context"
	"errors"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

const (
	// answer is how long the host may take for an answer.
	answer = 30 * time.Second
	// batch is the number of issues that become asks in one transaction.
	batch = 50
	// atOnce is how many imports a node carries out at the same time.
	atOnce = 4
	// maxTries limits the tries of an import whose host fails to answer.
	maxTries = 5
)

// ladder has an import tried again whose host did not answer.
var ladder = due.Ladder{First: time.Minute, Longest: 4 * time.Minute, Tries: maxTries}

func load(tx *db.Tx, key string) (job, bool, error) { return openByID.Maybe(tx, key) }

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// work carries out an import. An issue that has an ask gets no second one.
func (s *Service) work(ctx context.Context, j due.Job[job]) due.Outcome {
	got, err := s.carry(ctx, j)
	if err != nil {
		observe.Complain(ctx, s.Logger, "import the backlog, job "+j.Key, err)
		return due.Again(err)
	}
	return due.Done(func(tx *db.Tx) error {
		return s.end(tx, j.Row, Done, func(about event.Subject, filed int64) error {
			got.Filed = filed
			return importedEvent.Record(tx, about, got)
		})
	})
}

// giveUp ends an import whose host has not answered.
func (s *Service) giveUp(tx *db.Tx, key, _ string) error {
	j, ok, err := openByID.Maybe(tx, key)
	if err != nil || !ok {
		return err
	}
	return s.end(tx, j, Failed, func(about event.Subject, filed int64) error {
		return failedEvent.Record(tx, about, failedData{Filed: filed, Reason: "host_unavailable"})
	})
}

// carry files the asks of all open issues.
func (s *Service) carry(ctx context.Context, j due.Job[job]) (out importedData, err error) {
	var r repoRow
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		j.Renew(tx)
		if _, err = begin.Exec(tx, j.Row.ID, j.Tries); err != nil {
			return err
		}
		r, err = repoByID.One(tx, tx.Account, j.Row.RepoID)
		return err
	})
	if err != nil {
		return out, err
	}
	forge, err := s.Hosts.Forge(r.hostRepo())
	if err != nil {
		return out, err
	}
	out.IssuesKept = forge.Can(codehost.KeepIssues)
	trusted := map[string]bool{} // by author
	seen := map[string]bool{}    // an issue that changes meanwhile is answered again
	for cursor, more := "", out.IssuesKept; more; more = cursor != "" {
		var page []codehost.Issue
		if page, cursor, err = openIssues(ctx, forge, r.hostRepo(), cursor); err != nil {
			return out, err
		}
		page = slices.DeleteFunc(page, func(i codehost.Issue) bool { return i.Pull || seen[i.Key] })
		for some := range slices.Chunk(page, batch) {
			if err := vouched(ctx, forge, r.hostRepo(), some, trusted); err != nil {
				return out, err
			}
			if err := s.file(ctx, j, some, trusted); err != nil {
				return out, err
			}
		}
		for _, i := range page {
			seen[i.Key] = true
		}
	}
	out.Open = len(seen)
	return out, nil
}

// vouched notes of the authors of some issues whether they may write to the repository,
// as the host says now. Programs may not; what the server opened, a person of the account
// has asked for. It fails if the host does not answer.
func vouched(ctx context.Context, forge codehost.Forge, r codehost.Repo, some []codehost.Issue, trusted map[string]bool) error {
	ctx, cancel := context.WithTimeout(codehost.WithUrgency(ctx, codehost.ForSweeps), answer)
	defer cancel()
	for _, i := range some {
		_, known := trusted[i.Author.Login]
		if known || i.Author.Own || i.Author.Bot || i.Author.Login == "" {
			continue
		}
		may, err := forge.Permission(ctx, r, i.Author.Login)
		if _, busy := errors.AsType[*codehost.BusyError](err); busy || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		trusted[i.Author.Login] = err == nil && may >= codehost.PermitWrite
	}
	return nil
}

// openIssues asks the host for a page of the open issues of a repository.
func openIssues(ctx context.Context, forge codehost.Forge, r codehost.Repo, cursor string) ([]codehost.Issue, string, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return forge.IssuesSince(ctx, r, time.Time{}, true, cursor)
}

// file files the asks of some issues. It fails with due.ErrLost if another node has the import.
func (s *Service) file(ctx context.Context, j due.Job[job], some []codehost.Issue, trusted map[string]bool) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		j.Renew(tx)
		added := 0
		for _, i := range some {
			may := i.Author.Own || !i.Author.Bot && trusted[i.Author.Login]
			isNew, err := s.Asks.File(tx, j.Row.RepoID, event.Operator, i, may)
			if err != nil {
				return err
			}
			if isNew {
				added++
			}
		}
		_, err := credit.Exec(tx, j.Row.ID, added)
		return err
	})
}

// end records the end of an import. record writes the event; filed is the number of asks that
// the import has filed.
func (s *Service) end(tx *db.Tx, j job, as State, record func(about event.Subject, filed int64) error) error {
	n, err := finish.Exec(tx, j.ID, as, tx.Now)
	if err != nil || n == 0 {
		return err
	}
	total, err := filed.One(tx, tx.Account, j.ID)
	if err != nil {
		return err
	}
	return record(event.Subject{ID: j.ID, RepoID: j.RepoID}, total)
}
