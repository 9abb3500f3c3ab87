package review

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Code review"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "review.status", Method: "GET", Path: "/v1/prs/{id}/review-runs", Group: group,
			Rule: policy.Require(policy.ReadPRs), Paging: &op.Paging{Default: 25, Max: 100},
			Summary: "The reviews of a pull request by agents, newest first",
			Doc:     "Each head is reviewed once, by what has changed since the last one that was."}, s.status),
		op.New(op.Row{ID: "review.rerun", Method: "POST", Path: "/v1/prs/{id}/review-runs", Group: group,
			Rule: policy.Require(policy.WritePRs), Status: 202,
			Refuses: []op.Refusal{{Status: 409, Slug: "no_review"}, {Status: 409, Slug: "plan_done"}, {Status: 409, Slug: "head_moved"},
				{Status: 409, Slug: "pr_not_open"}, {Status: 409, Slug: "repo_disabled"}},
			Summary: "Have the latest review of a pull request run again, on the same commit",
			Doc:     "While a review is under way, that one is answered, with rerun: false, and nothing changes. Findings that were posted are not posted again; the verifier looks again at each of them that is open."}, s.rerun),
		op.New(op.Row{ID: "review.list", Method: "GET", Path: "/v1/repos/{owner}/{repo}/reviews", Group: group,
			Rule:    policy.Require(policy.ReadPRs),
			Summary: "The newest 50 reviews in a repository",
			Doc:     "Ordered by creation, then by the id of the task, with how right the findings were in the end. It takes no parameter; a repository that is not enabled is answered 404."}, s.list),
		op.New(op.Row{ID: "review.findings", Method: "GET", Path: "/v1/prs/{id}/findings", Group: group,
			Rule: policy.Require(policy.ReadPRs),
			Paging: &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{
				"state": {Posted, Answered, Fixed, Dismissed, Stale}}},
			Summary: "What reviews have found in a pull request, newest first",
			Doc:     "Findings that were verified and posted. Lines count in head_sha."}, s.findings),
		op.New(op.Row{ID: "review.dismiss", Method: "POST", Path: "/v1/findings/{id}/dismiss", Group: group,
			Rule:    policy.Require(policy.WritePRs),
			Refuses: []op.Refusal{{Status: 409, Slug: "finding_closed"}},
			Summary: "Drop a finding, of this pull request or as none at all",
			Doc:     "It no longer holds the merge, and is not posted in this pull request again. With rule: true it is none at all: nothing of its kind is named at that text in the repository again, and it counts as wrong in the precision of reviews; review.rule_delete takes the rule back. Again is no error, and with rule: true makes the rule that there is not yet. One that was fixed or is stale is refused."}, s.dismiss),
		op.New(op.Row{ID: "review.rules", Method: "GET", Path: "/v1/repos/{owner}/{repo}/review-rules", Group: group,
			Rule: policy.Require(policy.ReadPRs), Paging: &op.Paging{Default: 50, Max: 200},
			Summary: "What reviews do not name any more in a repository, newest first",
			Doc:     "One rule for each finding that a person dismissed with rule: true."}, s.rules),
		op.New(op.Row{ID: "review.rule_delete", Method: "DELETE", Path: "/v1/repos/{owner}/{repo}/review-rules/{id}", Group: group,
			Rule:    policy.Require(policy.WritePRs),
			Summary: "Let reviews name again what was dismissed",
			Doc:     "Findings that were dismissed stay dismissed."}, s.ruleDelete),
	}
}

// ReviewRun is a review as the API shows it.
type ReviewRun struct {
	_            struct{}    `doc:"One review of a head by agents: a finder, and a verifier of what it found." schema:"ReviewRun"`
	ID           string      `json:"id" format:"uuid" doc:"id of the review"`
	Repo         string      `json:"repo" doc:"owner/name"`
	PRID         string      `json:"pr_id" format:"uuid" doc:"the pull request"`
	Number       int64       `json:"number" example:"42" doc:"number of the pull request in its repository"`
	Title        string      `json:"title" doc:"title of the pull request"`
	URL          string      `json:"url" format:"uri" example:"https://yardmaster.example.com/ui/prs/0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"address of the pull request, for people"`
	TaskID       *string     `json:"task_id" format:"uuid" doc:"the task of the finder; null until it is queued, and if nothing was to be reviewed"`
	VerifyTaskID *string     `json:"verify_task_id" format:"uuid" doc:"the task of the verifier; null until there is something to verify"`
	Status       Status      `json:"status" example:"completed" doc:"sorting: what was found is held against the code and earlier findings; cancelled: also when a newer head made it useless"`
	HeadSHA      string      `json:"head_sha" doc:"the commit that is reviewed"`
	SinceSHA     *string     `json:"since_sha" example:"null" doc:"the head that was reviewed before: what has changed since is reviewed; null: the whole change"`
	FindingsKept *int64      `json:"findings_kept" example:"2" doc:"how many findings were posted; null: the review never came so far, which is not 0. 0 with a note: the code host refused them, and they are shown here alone"`
	More         int64       `json:"more" example:"0" doc:"findings beyond the limits of 10 a review and 30 a pull request, which were not posted"`
	Unlooked     int64       `json:"unlooked" example:"0" doc:"open findings of earlier reviews that the verifier was to look at again, and did not: they are beyond the limit of 20, or it could not tell. They stay open, and come first in the next review"`
	Verdict      *Verdict    `json:"verdict" example:"failure" doc:"what the code host was told: failure if findings hold the merge, neutral if nobody looked; it follows what people say of the findings; null until it has ended"`
	Brain        Brain       `json:"brain" doc:"which model looked"`
	Provenance   *Provenance `json:"provenance" doc:"what the box of the finder recorded; null: nothing"`
	Note         *string     `json:"note" example:"null" doc:"rebase: the change was reviewed on an earlier head; else why it was not carried out, or why the code host did not take its findings; null: there is nothing to say"`
	CreatedAt    time.Time   `json:"created_at" doc:"when it was begun"`
	EndedAt      *time.Time  `json:"ended_at" doc:"when it ended; null until then"`
}

// Brain tells which model looked at a head.
type Brain struct {
	_        struct{} `doc:"Which model looked at a head." schema:"ReviewBrain"`
	Kind     string   `json:"kind" enum:"model,blind,unknown" doc:"model: there was one; blind: there was none, and the check settles neutral; unknown: the review never came to ask one, or a program looked in the place of an agent (provenance has agent: command), of whose model nothing is known"`
	Provider *string  `json:"provider" doc:"whose model it was; null if that was not recorded"`
	Model    *string  `json:"model" doc:"its name; null if that was not recorded"`
	Gap      *Gap     `json:"gap" example:"null" doc:"why there was none: no model key fits the template; or the template is gone, or names no model; null unless it is blind"`
}

// Provenance is what a box recorded about the run of a finder.
type Provenance struct {
	_            struct{} `doc:"What a box recorded about the run of a review." schema:"ReviewProvenance"`
	RunID        string   `json:"run_id" format:"uuid" doc:"the run"`
	BoxID        string   `json:"box_id" format:"uuid" doc:"the box"`
	Agent        string   `json:"agent" example:"builtin" doc:"the program that looked"`
	AgentVersion *string  `json:"agent_version" example:"1.4.0" doc:"its version; null if it did not say"`
	Isolation    *string  `json:"isolation" example:"bubblewrap" doc:"how it was held; null if that is not known"`
}

// Precision tells how right the findings in a repository were.
type Precision struct {
	_         struct{} `doc:"How right the findings in a repository were." schema:"ReviewPrecision"`
	Posted    int64    `json:"posted" example:"40" doc:"findings posted in all"`
	Fixed     int64    `json:"fixed" example:"28" doc:"of those, mended by a later head"`
	Dismissed int64    `json:"dismissed" example:"9" doc:"of those, dismissed by a person"`
	N         int64    `json:"n" example:"28" doc:"of d decided findings so many were right: fixed"`
	D         int64    `json:"d" example:"35" doc:"findings that were fixed, or dismissed for the repository. One that was dismissed for its pull request alone decides nothing"`
}

// Reviews is the answer of review.list.
type Reviews struct {
	_          struct{}    `doc:"The newest reviews in a repository." schema:"Reviews"`
	Data       []ReviewRun `json:"data" doc:"newest first, at most 50"`
	NextCursor *string     `json:"next_cursor" doc:"always null: the list has no cursor"`
	HasMore    bool        `json:"has_more" doc:"whether there are older ones"`
	Precision  Precision   `json:"precision" doc:"how right the findings were in the end"`
}

// wire makes reviews of rows, with what other domains know about them.
func (s *Service) wire(tx *db.Tx, rows []Run) ([]ReviewRun, error) {
	prs, tasks, repos := make([]string, len(rows)), []string{}, map[string]string{}
	for i, r := range rows {
		prs[i] = r.PRID
		if r.TaskID != nil {
			tasks = append(tasks, *r.TaskID)
		}
		if repos[r.RepoID] == "" {
			at, _, err := repo.ByID(tx, r.RepoID)
			if err != nil {
				return nil, err
			}
			repos[r.RepoID] = at.FullName()
		}
	}
	titles, err := s.Pulls.Titles(tx, prs)
	if err != nil {
		return nil, err
	}
	brains, err := s.Models.Brains(tx, tasks)
	if err != nil {
		return nil, err
	}
	out := make([]ReviewRun, len(rows))
	for i, r := range rows {
		pr := titles[r.PRID]
		out[i] = ReviewRun{ID: r.ID, Repo: repos[r.RepoID], PRID: r.PRID, Number: pr.Number, Title: pr.Title, URL: pr.URL, TaskID: r.TaskID,
			VerifyTaskID: r.VerifyTaskID, Status: Status(r.State), HeadSHA: r.HeadSHA, SinceSHA: db.NullText(r.SinceSHA),
			FindingsKept: r.Kept,
			More:         r.More, Unlooked: r.Unlooked, Verdict: (*Verdict)(r.Verdict), Note: db.NullText(r.Note),
			CreatedAt: r.CreatedAt, EndedAt: r.EndedAt}
		out[i].Brain.Kind = "unknown"
		if r.Blind != "" {
			out[i].Brain = Brain{Kind: "blind", Gap: (*Gap)(&rows[i].Blind)}
		}
		if r.TaskID == nil {
			continue
		}
		b := brains[*r.TaskID]
		out[i].Provenance = b.Provenance
		switch {
		case b.Model != "" || b.Provider != "":
			out[i].Brain = Brain{Kind: "model", Provider: db.NullText(b.Provider), Model: db.NullText(b.Model)}
		case r.Kept != nil && !b.Program:
			out[i].Brain.Kind = "model" // that was not recorded
		}
	}
	return out, nil
}

type statusIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the pull request"`
	op.PageIn
}

// pull reads a pull request of the caller. It fails with fault.NotFound.
func (s *Service) pull(tx *db.Tx, prID string, read func(*db.Tx, string) (Pull, bool, error)) (Pull, error) {
	if !id.Valid(prID) {
		return Pull{}, fault.Missing("pull request")
	}
	p, ok, err := read(tx, prID)
	if err == nil && !ok {
		err = fault.Missing("pull request")
	}
	return p, err
}

func (s *Service) status(ctx context.Context, in statusIn) (out op.Page[ReviewRun], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if _, err := s.pull(tx, in.ID, s.Pulls.Get); err != nil {
			return err
		}
		rows, err := runsOfPull(tx, in.ID, in.PageIn)
		if err != nil {
			return err
		}
		p := op.NewPage(in.PageIn, rows, func(r Run) []string { return op.TimeKey(r.CreatedAt, r.ID) })
		out.NextCursor = p.NextCursor
		out.Data, err = s.wire(tx, p.Data)
		return err
	})
	return out, err
}

type rerunIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the pull request"`
}

// Rerun is the answer of review.rerun.
type Rerun struct {
	_      struct{}  `doc:"The review that runs again, or that runs already." schema:"ReviewRerun"`
	Rerun  bool      `json:"rerun" doc:"false: one was queued already, and nothing has changed"`
	TaskID *string   `json:"task_id" format:"uuid" doc:"the task of the finder; null while the queue has no room for it, and if no model is there"`
	Review ReviewRun `json:"review" doc:"the review"`
}

func (s *Service) rerun(ctx context.Context, in rerunIn) (out Rerun, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = Rerun{}
		p, err := s.pull(tx, in.ID, s.Pulls.Lock)
		if err != nil {
			return err
		}
		run, any, err := lastRun.Maybe(tx, tx.Account, p.ID)
		switch {
		case err != nil:
			return err
		case !any:
			return fault.Reason("no_review", "The pull request has had no review.")
		case p.PlanDone:
			return fault.Reason("plan_done", "The plan that the pull request is part of is done.")
		case run.EndedAt == nil:
			return s.answerRerun(tx, run, &out)
		case !p.Open:
			return fault.Reason("pr_not_open", "There is nothing to review: "+p.closed()+".")
		case run.HeadSHA != p.HeadSHA || p.MergeBase == "":
			return fault.Reason("head_moved", "The branch has a newer head, which is reviewed by itself, or on request.").
				With("current_head_sha", p.HeadSHA)
		}
		r, _, err := repo.ByID(tx, p.RepoID)
		if err != nil {
			return err
		}
		if !r.Enabled {
			return fault.Reason("repo_disabled", "The repository "+r.FullName()+" is not enabled.")
		}
		by := policy.From(ctx).UserID
		if err := s.begin(tx, r, p, &by); err != nil {
			return err
		}
		if run, _, err = lastRun.Maybe(tx, tx.Account, p.ID); err != nil {
			return err
		}
		out.Rerun = true
		if run.EndedAt == nil {
			if err := s.queue(tx, r, p, &run); err != nil && !full(err) { // the queue of reviews tries again
				return err
			}
		}
		return s.answerRerun(tx, run, &out)
	})
	return out, err
}

func (s *Service) answerRerun(tx *db.Tx, run Run, out *Rerun) error {
	all, err := s.wire(tx, []Run{run})
	if err != nil {
		return err
	}
	out.Review, out.TaskID = all[0], run.TaskID
	return nil
}

type listIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
}

// enabled reads a repository of the caller. It fails with fault.NotFound.
func enabled(tx *db.Tx, owner, name string) (repo.Ref, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	if err == nil && (!ok || !r.Enabled) {
		err = fault.Missing("enabled repository")
	}
	return r, err
}

func (s *Service) list(ctx context.Context, in listIn) (out Reviews, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := enabled(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		rows, err := runsOfRepo.All(tx, tx.Account, r.ID, maxList+1)
		if err != nil {
			return err
		}
		out = Reviews{HasMore: len(rows) > maxList}
		if out.Data, err = s.wire(tx, rows[:min(len(rows), maxList)]); err != nil {
			return err
		}
		counts, err := precisionOf.All(tx, tx.Account, r.ID)
		for _, c := range counts {
			out.Precision.Posted += c.N
			switch c.State {
			case Fixed:
				out.Precision.Fixed += c.N
				out.Precision.N += c.N
				out.Precision.D += c.N
			case Dismissed:
				out.Precision.Dismissed += c.N
				if c.Ruled {
					out.Precision.D += c.N
				}
			}
		}
		return err
	})
	return out, err
}

type ruleIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
	ID    string `json:"id" format:"uuid" doc:"id of the rule"`
}

// RuleDeleted is the answer of review.rule_delete.
type RuleDeleted struct {
	_  struct{} `doc:"A rule that is gone." schema:"ReviewRuleDeleted"`
	ID string   `json:"id" format:"uuid" doc:"id of the rule"`
}

func (s *Service) ruleDelete(ctx context.Context, in ruleIn) (out RuleDeleted, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := enabled(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		n := int64(0)
		if id.Valid(in.ID) {
			if n, err = dropRule.Exec(tx, tx.Account, r.ID, in.ID); err != nil {
				return err
			}
		}
		if n == 0 {
			return fault.Missing("rule")
		}
		out = RuleDeleted{ID: in.ID}
		return forgottenEvent.Record(tx, event.Subject{ID: in.ID, RepoID: r.ID}, forgottenData{RepoID: r.ID})
	})
	return out, err
}
