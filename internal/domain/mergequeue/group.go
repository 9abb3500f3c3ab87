package mergequeue

import (
	"context"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
)

// Our checks. A host whose rules demand them waits for them on the heads of the groups of
// its merge queue, too.
const (
	ownChecks  = "yardmaster/"
	checkName  = "yardmaster/check"
	checksBody = "The head that is merged was checked."
)

// groupCheck sets a check of ours on a group of a host's merge queue.
var groupCheck = intent.Declare[codehost.OwnCheck, string]("mergequeue.check", true)

// reporter carries out mergequeue.check.
type reporter struct{}

// Still implements intent.Handler.
func (reporter) Still(*db.Tx, intent.Call[codehost.OwnCheck]) (bool, error) { return true, nil }

// Do implements intent.Handler.
func (reporter) Do(ctx context.Context, f codehost.Forge, c intent.Call[codehost.OwnCheck]) (string, error) {
	return f.SetCheck(ctx, c.Repo.HostRepo(), c.ID, c.Args)
}

// Done implements intent.Handler.
func (reporter) Done(*db.Tx, intent.Call[codehost.OwnCheck], string, error) error { return nil }

// Grouped notes which group of a host's merge queue a queued head is in, and has those of
// our checks pass there that the rules of the base demand and that say nothing about a
// group. number is the last pull request of the group; 0 is
// unknown.
func (s *Service) Grouped(ctx context.Context, r repo.Ref, base, sha string, number int64) error {
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil || !codehost.ValidSHA(sha) {
		return err
	}
	var demanded []string
	if forge.Can(codehost.KeepRules) {
		rules, _, err := forge.BranchRules(ctx, r.HostRepo(), base, "")
		if err != nil {
			return err
		}
		for _, c := range rules.Required {
			if strings.HasPrefix(c.Name, ownChecks) {
				demanded = append(demanded, c.Name)
			}
		}
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if number > 0 {
			e, in, err := entryOfNumber.Maybe(tx, r.ID, number)
			if err != nil {
				return err
			}
			if in {
				if _, err := setGroupOf.Exec(tx, e.ID, sha, tx.Micros()); err != nil {
					return err
				}
			}
		}
		for _, name := range demanded {
			if name == checkName && r.Policy.Checks.Command != "" {
				continue // package ci runs that
			}
			if err := s.report(tx, r, codehost.OwnCheck{
				Name: name, SHA: sha, State: "success", Title: "Merge queue", Summary: checksBody,
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Service) report(tx *db.Tx, r repo.Ref, c codehost.OwnCheck) error {
	_, err := groupCheck.Put(tx, intent.Want[codehost.OwnCheck]{
		Repo: r, Object: c.SHA + "/" + c.Name, Rank: intent.ForRuns, Args: c,
	})
	return err
}
