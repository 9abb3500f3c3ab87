package provenance

import (
	"slices"

	"yardmaster/internal/attestation"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
)

// gather reads what is said about a merge of tx.Account.
func (s *Service) gather(tx *db.Tx, r row) (out attestation.Statement, err error) {
	m, ok, err := merge.Maybe(tx, tx.Account, r.PRID)
	if err == nil && !ok {
		err = fault.Missing("pull request")
	}
	if err != nil {
		return out, err
	}
	taskID := ""
	if m.TaskID != nil {
		taskID = *m.TaskID
	}
	said := attestation.Merge{
		AccountID: tx.Account, MergedBy: m.MergedBy, SignedAt: tx.Now.UTC(), Asked: m.asked(),
		PullRequest: attestation.PullRequest{
			ID: m.ID, Repo: m.Owner + "/" + m.Name, Number: m.Number, HeadSHA: m.HeadSHA, BaseRef: m.BaseRef, AuthorKind: m.AuthorKind,
		},
		Checks: attestation.Checks{State: m.Checks, Reruns: []attestation.Rerun{}},
	}
	if m.MergedAt != nil {
		said.MergedAt = m.MergedAt.UTC()
	}
	if said.Runs, err = runsOf(tx, r.PRID, taskID); err != nil {
		return out, err
	}
	if said.Reviews, said.Approvals, err = decided(tx, r.PRID); err != nil {
		return out, err
	}
	again, err := reruns.All(tx, r.RepoID, m.HeadSHA)
	if err != nil {
		return out, err
	}
	for _, a := range again {
		said.Checks.Reruns = append(said.Checks.Reruns, attestation.Rerun{Source: a.Source, Job: a.Job, At: a.At.UTC()})
	}
	cost, err := spend.One(tx, tx.Account, r.PRID, taskID)
	said.Spend = attestation.Spend{USD: money.DollarsOrNone(cost.Micros), UnpricedCalls: cost.Unpriced}
	return attestation.Statement{
		Type: attestation.StatementType, PredicateType: attestation.PredicateType, Predicate: said,
		Subject: []attestation.Subject{
			{Name: m.Owner + "/" + m.Name, Digest: map[string]string{"gitCommit": r.MergeSHA}},
			{Name: "pull request", URI: s.url(m), Digest: map[string]string{"gitCommit": m.HeadSHA}},
		},
	}, err
}

// url is the address of a pull request, for people.
func (s *Service) url(m mergeRow) string {
	if m.URL != "" {
		return m.URL
	}
	return s.BaseURL + "/ui/prs/" + m.ID
}

func (m mergeRow) asked() *attestation.Asked {
	if m.TaskID == nil || m.CreatedBy == nil {
		return nil
	}
	a := &attestation.Asked{
		TaskID: *m.TaskID, RequestedBy: m.RequestedBy, CreatedBy: *m.CreatedBy, AskID: m.AskID, Source: m.AskStory,
	}
	if m.Verdict != nil {
		a.Verdict = &m.Verdict.V.Kind
	}
	return a
}

// published tells whether everybody who may read the repository may read what its merges came of.
// At a host that others run, what a public repository has is public.
func (m mergeRow) published() bool { return m.Host == codehost.BuiltIn || m.Private || m.Public }

func runsOf(tx *db.Tx, prID, taskID string) ([]attestation.Run, error) {
	rows, err := runs.All(tx, tx.Account, prID, taskID)
	out := []attestation.Run{}
	for _, r := range rows {
		if n := len(out); n > 0 && out[n-1].ID == r.ID { // another session of the run
			out[n-1].Models = with(out[n-1].Models, r.Model)
			continue
		}
		run := attestation.Run{
			ID: r.ID, TaskID: r.TaskID, Kind: r.Kind, Attempt: r.Attempt, Outcome: r.Outcome, Template: r.Template, Agent: r.Agent,
			AgentVersion: r.AgentVersion, Models: with([]string{}, r.Model), PromptSHA256: r.PromptSHA256, BoxID: r.BoxID,
			Isolation: r.Isolation,
		}
		if r.IsolationHolds != nil {
			run.IsolationHolds = r.IsolationHolds.V
		}
		out = append(out, run)
	}
	return out, err
}

func with(models []string, m *string) []string {
	if m == nil || *m == "" || slices.Contains(models, *m) {
		return models
	}
	return append(models, *m)
}

func decided(tx *db.Tx, prID string) ([]attestation.Review, []attestation.Approval, error) {
	looks, err := reviews.All(tx, tx.Account, prID)
	if err != nil {
		return nil, nil, err
	}
	all, approvals := []attestation.Review{}, []attestation.Approval{}
	for _, l := range looks {
		all = append(all, attestation.Review(l))
	}
	for _, q := range []db.Query[decisionRow]{decisions, hostReviews} {
		rows, err := q.All(tx, tx.Account, prID)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range rows {
			approvals = append(approvals, attestation.Approval(d))
		}
	}
	return all, approvals, nil
}
