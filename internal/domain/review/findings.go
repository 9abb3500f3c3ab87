package review

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Shown is a finding as the API shows it.
type Shown struct {
	_           struct{}      `doc:"A defect that a review found and verified." schema:"Finding"`
	ID          string        `json:"id" format:"uuid" doc:"id of the finding"`
	PRID        string        `json:"pr_id" format:"uuid" doc:"the pull request"`
	ReviewID    string        `json:"review_id" format:"uuid" doc:"the review that found it"`
	State       FindingState  `json:"state" doc:"posted: it waits for an answer; answered: somebody replied in its thread; fixed: the verifier saw that a later head does not have it; dismissed: a person dropped it; stale: the pull request is over"`
	HoldsMerge  bool          `json:"holds_merge" doc:"whether the merge waits for it"`
	HeadSHA     string        `json:"head_sha" doc:"the head in which the lines count: the last reviewed one, unless that has nothing of the place any more"`
	File        string        `json:"file" example:"web/footer.go" doc:"path from the root, as the file is called in that head"`
	Side        codehost.Side `json:"side" doc:"LEFT: a line of the merge base of that head, which the change deletes"`
	StartLine   *int          `json:"start_line" example:"null" doc:"the first line of a range; null: one line"`
	Line        int           `json:"line" example:"12" doc:"the line, or the last of the range"`
	Symbol      string        `json:"symbol" example:"func year() int {" doc:"the line that names the section around it; may be empty"`
	Severity    repo.Severity `json:"severity" example:"high" doc:"how bad it is"`
	Kind        Kind          `json:"kind" doc:"what sort of defect"`
	Claim       string        `json:"claim" example:"The year is one too small on 31 December." doc:"what is wrong, in a sentence"`
	Why         string        `json:"why" example:"The time is taken in UTC-12." doc:"why it is wrong"`
	HowToSee    string        `json:"how_to_see" example:"TZ=Etc/GMT+12 go test ./web" doc:"a command, an input, or steps"`
	Suggestion  *string       `json:"suggestion" example:"null" doc:"what may take the place of the lines; null without one"`
	Evidence    string        `json:"evidence" example:"The test fails with 2025 for 2026." doc:"how the verifier confirmed it"`
	FixedSHA    *string       `json:"fixed_sha" example:"null" doc:"the head that does not have it any more; null unless it is fixed"`
	DismissedBy *string       `json:"dismissed_by" example:"null" doc:"who dropped it; null unless it is dismissed"`
	Unlooked    bool          `json:"unlooked" example:"false" doc:"whether the verifier was to look at it again, and did not or could not tell: it comes first in the next review"`
	CreatedAt   time.Time     `json:"created_at" doc:"when it was found"`
	UpdatedAt   time.Time     `json:"updated_at" doc:"when it last changed"`
}

func (f Finding) wire(r repo.Ref) Shown {
	out := Shown{ID: f.ID, PRID: f.PRID, ReviewID: f.RunID, State: FindingState(f.State),
		HoldsMerge: holds(f.State, f.Severity, r.Policy.Review.Block),
		HeadSHA:    f.HeadSHA, File: f.File, Side: codehost.Side(f.Side), Line: f.Line, Symbol: f.Symbol, Severity: f.Severity,
		Kind: f.Kind, Claim: f.Claim,
		Why: f.Why, HowToSee: f.HowToSee, Suggestion: db.NullText(f.Suggestion), Evidence: f.Evidence, FixedSHA: f.FixedSHA,
		DismissedBy: f.DismissedBy, Unlooked: f.Unlooked && isOpen(f.State), CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt}
	if f.StartLine > 0 {
		out.StartLine = &f.StartLine
	}
	return out
}

func (s *Service) findings(ctx context.Context, in statusIn) (out op.Page[Shown], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		p, err := s.pull(tx, in.ID, s.Pulls.Get)
		if err != nil {
			return err
		}
		r, _, err := repo.ByID(tx, p.RepoID)
		if err != nil {
			return err
		}
		rows, err := findingsOf(tx, in.ID, in.PageIn)
		if err != nil {
			return err
		}
		page := op.NewPage(in.PageIn, rows, func(f Finding) []string { return op.TimeKey(f.CreatedAt, f.ID) })
		out = op.Page[Shown]{Data: make([]Shown, len(page.Data)), NextCursor: page.NextCursor}
		for i, f := range page.Data {
			out.Data[i] = f.wire(r)
		}
		return nil
	})
	return out, err
}

type dismissIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the finding"`
	Reason string `json:"reason,omitempty" maxLength:"1000" example:"The caller holds the lock." doc:"why; kept in the audit log"`
	Rule   bool   `json:"rule,omitempty" example:"true" doc:"true: it is none at all, and nothing of its kind is named at that text in the repository again; left out or false: it is dropped in this pull request alone"`
}

// Dismissal is the answer of review.dismiss.
type Dismissal struct {
	_ struct{} `doc:"A finding that was dropped, and the rule by which reviews do not name it any more, if there is one." schema:"DismissedFinding"`
	Shown
	Repo   string  `json:"repo" example:"acme/web" doc:"owner/name of the repository"`
	RuleID *string `json:"rule_id" format:"uuid" doc:"id of the rule, for review.rule_delete; null: there is none, since it was dismissed for this pull request alone, or somebody has deleted the rule"`
}

// dismissal is a dismissed finding with its rule, if there is one.
func (f Finding) dismissal(tx *db.Tx, r repo.Ref) (out Dismissal, err error) {
	out = Dismissal{Shown: f.wire(r), Repo: r.FullName()}
	rule, ok, err := ruleAt.Maybe(tx, ruleAtArgs{tx.Account, f.RepoID, string(f.Kind), f.Symbol, f.Anchor})
	if ok && f.Ruled {
		out.RuleID = &rule
	}
	return out, err
}

func (s *Service) dismiss(ctx context.Context, in dismissIn) (out Dismissal, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if !id.Valid(in.ID) {
			return fault.Missing("finding")
		}
		f, ok, err := findingByID.Maybe(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		if !ok || !shown(f.State) {
			return fault.Missing("finding")
		}
		p, _, err := s.Pulls.Lock(tx, f.PRID)
		if err != nil {
			return err
		}
		if f, err = findingByID.One(tx, tx.Account, in.ID); err != nil {
			return err
		}
		r, _, err := repo.ByID(tx, f.RepoID)
		if err != nil {
			return err
		}
		again := f.State == Dismissed
		if again {
			if out, err = f.dismissal(tx, r); err != nil || out.RuleID != nil || !in.Rule {
				return err
			}
		}
		switch {
		case !again && !allowed(f.State, Dismissed):
			return fault.Reason("finding_closed", "The finding is "+f.State+".")
		case in.Rule && f.Anchor == "":
			return fault.Field("rule", "cannot be made: the finding is at no text of a file")
		}
		by := policy.From(ctx).Label()
		f.State, f.DismissedBy, f.UpdatedAt, f.ClaimNo, f.Ruled = Dismissed, &by, tx.Now, 0, in.Rule
		if _, err := updateFinding.Exec(tx, f); err != nil {
			return err
		}
		if in.Rule {
			if _, err := insertRule.Exec(tx, ruleArgs{ID: id.New(), AccountID: tx.Account, RepoID: f.RepoID,
				Kind: string(f.Kind), Symbol: f.Symbol,
				Anchor: f.Anchor, Claim: f.Claim, Reason: in.Reason, CreatedBy: by, CreatedAt: tx.Now}); err != nil {
				return err
			}
		}
		if !again {
			if err := s.Poster.Answer(tx, r, p, f, "Dismissed.", true); err != nil {
				return err
			}
		}
		if err := s.settle(tx, r, p); err != nil {
			return err
		}
		if err := s.tell(tx, r, p); err != nil {
			return err
		}
		if out, err = f.dismissal(tx, r); err != nil {
			return err
		}
		return dismissedEvent.Record(tx, event.Subject{ID: f.ID, RepoID: f.RepoID},
			dismissedData{PRID: f.PRID, Reason: in.Reason, Rule: in.Rule})
	})
	return out, err
}

// Rule is a dismissal that holds for a repository, as the API shows it.
type Rule struct {
	_         struct{}  `doc:"What reviews do not name any more in a repository." schema:"ReviewRule"`
	ID        string    `json:"id" format:"uuid" doc:"id of the rule"`
	Kind      Kind      `json:"kind" doc:"of the finding that was dismissed"`
	Symbol    string    `json:"symbol" example:"func year() int {" doc:"the section in which it was; may be empty"`
	Claim     string    `json:"claim" example:"The year is one too small on 31 December." doc:"what it claimed"`
	Reason    string    `json:"reason" doc:"why it was none; may be empty"`
	CreatedBy string    `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who dismissed it"`
	CreatedAt time.Time `json:"created_at" doc:"when"`
}

type rulesIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
	op.PageIn
}

func (s *Service) rules(ctx context.Context, in rulesIn) (out op.Page[Rule], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := enabled(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		rows, err := listRules(tx, r.ID, in.PageIn)
		if err != nil {
			return err
		}
		page := op.NewPage(in.PageIn, rows, func(r ruleRow) []string { return op.TimeKey(r.CreatedAt, r.ID) })
		out = op.Page[Rule]{Data: make([]Rule, len(page.Data)), NextCursor: page.NextCursor}
		for i, r := range page.Data {
			out.Data[i] = Rule{ID: r.ID, Kind: Kind(r.Kind), Symbol: r.Symbol, Claim: r.Claim, Reason: r.Reason, CreatedBy: r.CreatedBy,
				CreatedAt: r.CreatedAt}
		}
		return nil
	})
	return out, err
}
