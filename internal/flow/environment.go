package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// Environment is what a box makes ready before a run of the task. The script and its rules are
// those of the default branch, whatever the task works on. Its result is kept for the runs of
// one repository of one account, apart for those that get no secrets.
func (s RunSetup) Environment(tx *db.Tx, t *task.Row, lent bool) (*protocol.Environment, error) {
	r, err := repoAnywhere(tx, t.RepoID)
	if err != nil || r.Policy.Prepare.Command == "" {
		return nil, err
	}
	p := r.Policy.Prepare
	out := &protocol.Environment{
		Scope: t.AccountID + "/" + t.RepoID, Command: p.Command, Inputs: p.Inputs, Network: p.Hosts(), Secrets: p.Secrets,
		TimeoutMS: p.For().Milliseconds(),
	}
	if lent {
		out.Why = "a box that another account has lent makes nothing ready"
		return out, nil
	}
	without, err := withoutSecrets(tx, t)
	if err != nil || !without {
		return out, err
	}
	out.Scope += "/without"
	if len(p.Secrets) > 0 {
		out.Why = "work of a fork, or of a box that another account has lent, is given no secrets, and the script wants some"
	}
	return out, nil
}
