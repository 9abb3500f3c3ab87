package flow

import (
	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/review"
)

// Reviewer is the part of reviews that the events of hosts need.
type Reviewer interface {
	// Request begins the review of the head of a pull request because a person asks for
	// it; false if there is none, or one is under way.
	Request(tx *db.Tx, r repo.Ref, p review.Pull, by *string) (bool, error)
	// ReadThreads reads the threads of a pull request.
	ReadThreads(ctx context.Context, r repo.Ref, prID string, number int64) error
}

// writes tells whether somebody may write in a repository now: a program may not, nor may
// a person whom the host does not know.
func (h HostEvents) writes(ctx context.Context, r repo.Ref, by codehost.User) (bool, error) {
	if by.Own || by.Bot || by.Login == "" {
		return false, nil
	}
	forge, err := h.Hosts.Forge(r.HostRepo())
	if err != nil {
		return false, err
	}
	may, err := forge.Permission(ctx, r.HostRepo(), by.Login)
	return may >= codehost.PermitWrite, err
}

// rerun runs a check of ours anew that a person has asked for at the host; all of them,
// if the event names none.
func (h HostEvents) rerun(ctx context.Context, r repo.Ref, e codehost.CheckRequested) error {
	if !codehost.ValidSHA(e.SHA) || e.Name != "" && e.Name != ci.CheckName && e.Name != review.CheckName {
		return nil
	}
	if may, err := h.writes(ctx, r, e.By); err != nil || !may {
		return err
	}
	return h.DB.Write(ctx, func(tx *db.Tx) error {
		heads, err := pull.AtHead(tx, r.ID, e.SHA)
		if err != nil {
			return err
		}
		if e.Name != review.CheckName {
			if err := h.Checks.GroupAgain(tx, r, e.SHA); err != nil {
				return err
			}
		}
		for _, prID := range heads {
			if e.Name != review.CheckName {
				if err := h.Pulls.CheckAgain(tx, r, prID, e.SHA); err != nil {
					return err
				}
			}
			if e.Name == ci.CheckName {
				continue
			}
			p, ok, err := reviewPull(tx, prID, true)
			if err != nil || !ok {
				return err
			}
			if _, err := h.Reviews.Request(tx, r, p, new("")); err != nil { // of nobody who is known here
				return err
			}
		}
		return nil
	})
}
