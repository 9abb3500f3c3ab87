package backlog

import (
	"context"
	"errors"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	// hold is the time for which a node has an import, renewed with each batch. If
	// the node crashes, another one takes the import after that time.
	hold = time.Minute
	// sweep is the time between two searches for due imports without a notice.
	sweep = 30 * time.Second
	// batch is the number of issues that become asks in one transaction.
	batch = 50
	// maxTries limits the tries of an import whose host fails to answer.
	maxTries = 5
)

// errLost ends the work on an import that another node has taken.
var errLost = errors.New("backlog: another node has it")

// Loop carries out due imports until ctx ends. Several nodes may run Loop at once: a
// node takes an import in the database, for the time of hold, and an issue that has an
// ask gets no second one.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "backlog.sweep", event.BacklogTopic, sweep, s.pass)
	return nil
}

// pass carries out the imports that are due.
func (s *Service) pass(ctx context.Context) {
	claim := id.New()
	for ctx.Err() == nil {
		var due []job
		err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
			due, err = takeDue.All(tx, tx.Now, claim, tx.Now.Add(hold))
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "take due imports", err)
			return
		}
		if len(due) == 0 {
			return
		}
		for _, j := range due {
			if err := s.work(db.WithAccount(ctx, j.AccountID), j, claim); err != nil {
				observe.Complain(ctx, s.Logger, "import the backlog, job "+j.ID, err)
			}
		}
	}
}

func (s *Service) work(ctx context.Context, j job, claim string) error {
	var r repoRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = repoByID.One(tx, tx.Account, j.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	forge, err := s.Hosts.Forge(r.hostRepo())
	if err != nil {
		return errors.Join(err, s.again(ctx, j, claim))
	}
	kept := forge.Can(codehost.KeepIssues)
	trusted := map[string]bool{} // by author
	seen := map[string]bool{}    // an issue that changes meanwhile is answered again
	for cursor, more := "", kept; more; more = cursor != "" {
		var page []codehost.Issue
		if page, cursor, err = openIssues(ctx, forge, r.hostRepo(), cursor); err != nil {
			return errors.Join(err, s.again(ctx, j, claim))
		}
		page = slices.DeleteFunc(page, func(i codehost.Issue) bool { return i.Pull || seen[i.Key] })
		for some := range slices.Chunk(page, batch) {
			if err := vouched(ctx, forge, r.hostRepo(), some, trusted); err != nil {
				return errors.Join(err, s.again(ctx, j, claim))
			}
			if err := s.file(ctx, j, claim, some, trusted); err != nil {
				return err
			}
		}
		for _, i := range page {
			seen[i.Key] = true
		}
	}
	return s.end(ctx, j, claim, Done, func(tx *db.Tx, about event.Subject, filed int64) error {
		return importedEvent.Record(tx, about, importedData{Filed: filed, IssuesKept: kept, Open: len(seen)})
	})
}

// vouched notes of the authors of some issues whether they may write to the repository,
// as the host says now. Programs may not; what the server opened, a person of the account
// has asked for. It fails if the host does not answer.
func vouched(ctx context.Context, forge codehost.Forge, r codehost.Repo, some []codehost.Issue, trusted map[string]bool) error {
	ctx, cancel := context.WithTimeout(codehost.WithUrgency(ctx, codehost.ForSweeps), hold/2)
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
	ctx, cancel := context.WithTimeout(ctx, hold/2)
	defer cancel()
	return forge.IssuesSince(ctx, r, time.Time{}, true, cursor)
}

// file files the asks of some issues. It fails with errLost if another node has the
// import.
func (s *Service) file(ctx context.Context, j job, claim string, some []codehost.Issue, trusted map[string]bool) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if n, err := renew.Exec(tx, renewArgs{AccountID: tx.Account, ID: j.ID, Claim: claim, DueAt: tx.Now.Add(hold)}); err != nil ||
			n == 0 {
			return errors.Join(err, errLost)
		}
		added := 0
		for _, i := range some {
			may := i.Author.Own || !i.Author.Bot && trusted[i.Author.Login]
			isNew, err := s.Asks.File(tx, j.RepoID, event.Operator, i, may)
			if err != nil {
				return err
			}
			if isNew {
				added++
			}
		}
		_, err := credit.Exec(tx, creditArgs{AccountID: tx.Account, ID: j.ID, Claim: claim, Filed: added})
		return err
	})
}

// again puts off an import whose host did not answer. After maxTries it ends the import
// as failed.
func (s *Service) again(ctx context.Context, j job, claim string) error {
	if j.Tries >= maxTries {
		return s.end(ctx, j, claim, Failed, func(tx *db.Tx, about event.Subject, filed int64) error {
			return failedEvent.Record(tx, about, failedData{Filed: filed, Reason: "host_unavailable"})
		})
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := retry.Exec(tx, retryArgs{
			AccountID: tx.Account, ID: j.ID, Claim: claim, DueAt: tx.Now.Add(time.Duration(j.Tries) * hold),
		})
		return err
	})
}

// end records the end of an import, once. record writes the event; filed is the number
// of asks that the import has filed.
func (s *Service) end(ctx context.Context, j job, claim string, as State,
	record func(tx *db.Tx, about event.Subject, filed int64) error) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := finish.Exec(tx, finishArgs{AccountID: tx.Account, ID: j.ID, Claim: claim, State: as, FinishedAt: tx.Now})
		if err != nil || n == 0 {
			return err
		}
		total, err := filed.One(tx, tx.Account, j.ID)
		if err != nil {
			return err
		}
		return record(tx, event.Subject{ID: j.ID, RepoID: j.RepoID}, total)
	})
}
