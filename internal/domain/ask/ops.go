package ask

import (
	"context"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const group = "Asks"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadTasks), policy.Require(policy.WriteTasks)
	return []op.Op{
		op.New(op.Row{ID: "ask.file", Method: "POST", Path: "/v1/asks", Group: group, Rule: write, Status: 202, Also: []int{200},
			Summary: "File something wanted, for triage to decide what becomes of it",
			Doc: "Triage reads the ask against the work that is under way, and makes tasks or a plan of it, finds that it is covered " +
				"already, drops it, or asks a person. The answer comes before that: follow it with ask.get. Filing again under the same dedupe_key " +
				"answers the ask that is there with 200 and kind existing, whatever else is sent. Work that is already decided goes to task.create " +
				"instead.",
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, {Status: 409, Slug: "repo_disabled"},
				{Status: 409, Slug: "issue-closed"}}}, s.fileOne),
		op.New(op.Row{ID: "ask.list", Method: "GET", Path: "/v1/asks", Group: group, Rule: read,
			Paging: &op.Paging{Default: 50, Max: 200, Q: true,
				Filters: map[string][]string{"state": Pending.Values(), "repo": nil, "source": nil, "id": nil}},
			Summary: "List the account's asks, newest first; q searches the title, 20,000 asks a page, which may be short or empty and still " +
				"have a next",
			Doc: "Without a filter asks of every state are listed. filter=source:schedule, say, lists those of one source, filter=id:PART those whose id begins or ends with it."}, s.list),
		op.New(op.Row{ID: "ask.get", Method: "GET", Path: "/v1/asks/{askId}", Group: group, Rule: read,
			Summary: "One ask, and what became of it",
			Doc:     "verdict says what triage made of it; it is null while the ask is pending."}, s.get),
		op.New(op.Row{ID: "ask.redrive", Method: "POST", Path: "/v1/asks/{askId}/redrive", Group: group, Rule: write,
			Summary: "Give an ask that found no judge back to triage",
			Doc: "For an ask that was escalated because no judge could be reached, as when the account has no model key. It is pending again " +
				"and its escalation is resolved. Any other ask is refused.",
			Refuses: []op.Refusal{{Status: 409, Slug: "not_redrivable"}}}, s.redrive),
		op.New(op.Row{ID: "ask.approve", Method: "POST", Path: "/v1/asks/{askId}/approve", Group: group, Rule: write.OfUser(),
			Summary: "Let an ask of a run into triage that the run may not begin by itself",
			Doc: "For an ask that was escalated because a run asks for work in another repository, for more rights than it has, with text of " +
				"strangers, or after three asks of agents in a row. The escalation says which run of which task asks. The ask is pending " +
				"again, its escalation is resolved, and from now on it counts as asked for by the caller, within the caller's rights. Any " +
				"other ask is refused.",
			Refuses: []op.Refusal{{Status: 409, Slug: "not_approvable"}}}, s.approve),
	}
}

type fileIn struct {
	Repo      string            `json:"repo,omitempty" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"owner/name; without it the judge may pick among the account's"`
	IssueID   string            `json:"issue_id,omitempty" format:"uuid" example:"0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"an open issue of a code host that the ask is about, and that follows it from then on: triage of it begins anew, whatever became of it before. While the issue follows an ask that is pending, or of which work has come, that one is answered as existing"`
	Title     string            `json:"title" minLength:"1" maxLength:"200" doc:"one line"`
	Body      string            `json:"body" minLength:"1" maxLength:"20000" example:"The footer shows last year on every page." doc:"what is wanted and why, for triage and for the agents that come after"`
	Source    string            `json:"source,omitempty" pattern:"^[a-z][a-z0-9_-]*$" maxLength:"32" example:"support" doc:"where it comes from, for your own lists; api unless given. The names that the platform files under are refused"`
	DedupeKey string            `json:"dedupe_key,omitempty" maxLength:"200" example:"ticket-1042" doc:"the account has one ask for each key that callers file under; filing again answers it. What the platform files itself (sources run, plan, blocker, inbound, backlog, issue, schedule) has keys of its own, which no caller takes or meets"`
	Labels    map[string]string `json:"labels,omitempty" maxItems:"50" maxLength:"200" example:"{\"team\":\"web\"}" doc:"names and values of your own, which its tasks get as well"`
}

// Filed is the answer of ask.file.
type Filed struct {
	_     struct{} `doc:"Where the ask stands after filing."`
	Kind  string   `json:"kind" enum:"filed,existing" doc:"existing: there was one under the same dedupe_key, and nothing was filed"`
	AskID string   `json:"askId" format:"uuid" doc:"id of the ask"`
	State State    `json:"state" doc:"pending for a new ask"`
}

// StatusCode tells a new ask from one that was there.
func (a Filed) StatusCode() int {
	if a.Kind == "existing" {
		return 200
	}
	return 202
}

func (s *Service) fileOne(ctx context.Context, in fileIn) (out Filed, err error) {
	in.Title = strings.TrimSpace(in.Title)
	if slices.Contains(own(), in.Source) {
		return out, fault.Field("source", "is one that the platform files under; give another")
	}
	switch {
	case in.Title == "":
		return out, fault.Field("title", "must not be empty")
	case strings.ContainsAny(in.Title, "\r\n"):
		return out, fault.Field("title", "must be one line")
	case strings.TrimSpace(in.Body) == "":
		return out, fault.Field("body", "must not be empty")
	}
	actor := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		enabled := true
		f := Filing{Title: in.Title, Body: in.Body, Source: in.Source, Labels: in.Labels, DedupeKey: in.DedupeKey, Scopes: actor.Scopes}
		if in.IssueID != "" {
			out, err = s.fileOfIssue(tx, in, f)
			return err
		}
		if in.Repo != "" {
			owner, name, _ := strings.Cut(in.Repo, "/")
			r, ok, err := repoByName.Maybe(tx, tx.Account, owner, name)
			if err != nil {
				return err
			}
			if !ok {
				return fault.Missing("repository")
			}
			f.RepoIDs, enabled = []string{r.ID}, r.Enabled
		}
		a, existing, err := s.File(tx, f)
		if err != nil {
			return err
		}
		out = Filed{Kind: "filed", AskID: a.AskID, State: a.State}
		switch {
		case existing:
			out.Kind = "existing"
		case !enabled:
			return fault.Reason("repo_disabled", "The repository "+in.Repo+" is not enabled.")
		}
		return nil
	})
	return out, err
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (page op.Page[Ask], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var repoID string
		if full := in.Want("repo"); full != "" {
			owner, name, _ := strings.Cut(full, "/")
			r, ok, err := repoByName.Maybe(tx, tx.Account, owner, name)
			if err != nil || !ok {
				page = op.NewPage(in.PageIn, []Ask{}, nil)
				return err
			}
			repoID = r.ID
		}
		rows, end, err := list(tx, in.PageIn, repoID)
		if err != nil {
			return err
		}
		found := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
		page.NextCursor = found.NextCursor
		if end != nil {
			page.NextCursor = in.At(end)
		}
		page.Data, err = s.show(tx, found.Data)
		return err
	})
	return page, err
}

type idIn struct {
	AskID string `json:"askId" format:"uuid" doc:"id of the ask"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Ask, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.AskID, false)
		if err != nil {
			return err
		}
		shown, err := s.show(tx, []row{r})
		if err == nil {
			out = shown[0]
		}
		return err
	})
	return out, err
}

// Redriven is the answer of ask.redrive.
type Redriven struct {
	_      struct{} `doc:"The ask, back in triage."`
	AskID  string   `json:"askId" format:"uuid" doc:"id of the ask"`
	State  State    `json:"state" enum:"pending" doc:"always pending"`
	Nudged bool     `json:"nudged" doc:"false: no judge was free to take it up at once; a sweep will"`
}

func (s *Service) redrive(ctx context.Context, in idIn) (out Redriven, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		about, _, err := s.again(tx, in.AskID, []string{JudgeUnavailable}, "The ask went back to triage.", "not_redrivable",
			"Only an ask that was escalated because no judge answered goes back to triage")
		if err != nil {
			return err
		}
		out = Redriven{AskID: in.AskID, State: Pending, Nudged: s.free() > 0}
		return redrivenEvent.Record(tx, about, event.None{})
	})
	return out, err
}

// again gives an ask to triage that was escalated for one of some reasons, and resolves its
// escalation with a note. It refuses any other ask, by the slug and the words of a fault.
func (s *Service) again(tx *db.Tx, askID string, of []string, note, slug, only string) (about event.Subject, reason string, err error) {
	r, err := find(tx, askID, true)
	if err != nil {
		return about, "", err
	}
	reason = deref(r.EscalationReason)
	if r.State != Escalated || !slices.Contains(of, reason) {
		return about, "", fault.Reason(slug, only+"; this one is "+standing(&r)+".")
	}
	if _, err := revive.Exec(tx, tx.Account, r.ID); err != nil {
		return about, "", err
	}
	if err := escalation.ResolveOfAsk(tx, r.ID, reason, note); err != nil {
		return about, "", err
	}
	if err := TurnChanged.Send(tx, Turn{r.ID, true}); err != nil {
		return about, "", err
	}
	err = Settled.Send(tx, Settlement{AskID: r.ID, State: Pending})
	return event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, reason, err
}

// Approved is the answer of ask.approve.
type Approved struct {
	_          struct{} `doc:"The ask, in triage."`
	AskID      string   `json:"askId" format:"uuid" doc:"id of the ask"`
	State      State    `json:"state" enum:"pending" doc:"always pending"`
	ApprovedBy string   `json:"approved_by" format:"uuid" doc:"id of the caller, for whom the ask counts from now on"`
}

func (s *Service) approve(ctx context.Context, in idIn) (out Approved, err error) {
	actor := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		about, reason, err := s.again(tx, in.AskID, Approvable(), "The ask was approved.", "not_approvable",
			"Only an ask of a run that waits for a person is approved")
		if err != nil {
			return err
		}
		if _, err := approve.Exec(tx, approveArgs{
			AccountID: tx.Account, ID: in.AskID, UserID: actor.UserID, Scopes: db.JSON[[]string]{V: actor.Scopes.Names()},
		}); err != nil {
			return err
		}
		out = Approved{AskID: in.AskID, State: Pending, ApprovedBy: actor.UserID}
		return approvedEvent.Record(tx, about, approvedData{Reason: reason})
	})
	return out, err
}

// standing describes the state of an ask in words.
func standing(r *row) string {
	if r.EscalationReason != nil {
		return string(r.State) + " for " + *r.EscalationReason
	}
	return string(r.State)
}
