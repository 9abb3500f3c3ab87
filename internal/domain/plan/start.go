package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type startIn struct {
	Repo            string   `json:"repo,omitempty" maxLength:"200" doc:"owner/name; this or repos"`
	Repos           []string `json:"repos,omitempty" maxItems:"20" maxLength:"200" doc:"owner/name of each"`
	Ask             string   `json:"ask" minLength:"1" maxLength:"15000" example:"Replace the footer on every page of the shop." doc:"what is wanted, in plain words"`
	ReturnContext   bool     `json:"return_context,omitempty" doc:"survey each repository and answer what was found; nothing is planned"`
	RequireApproval *bool    `json:"require_approval,omitempty" doc:"the plan is held until it is approved; for one repository"`
	Template        string   `json:"template,omitempty" maxLength:"100" doc:"for the scouts; the repository's own unless given"`
}

// Started is the answer of plan.start. With RawTaskID, an ask, there is no task
// yet.
type Started struct {
	_             struct{} `doc:"What was set going: a scout, or one for each repository."`
	TaskID        *string  `json:"task_id,omitempty" format:"uuid" doc:"of the scout; the first of several"`
	TaskIDs       []string `json:"task_ids,omitempty" format:"uuid" doc:"of all scouts of a fan-out"`
	PlanID        *string  `json:"plan_id,omitempty" format:"uuid" doc:"the plan that the scout drafts"`
	FanoutID      *string  `json:"fanout_id,omitempty" format:"uuid" doc:"where plan.context finds what the scouts bring back"`
	RawTaskID     *string  `json:"raw_task_id,omitempty" format:"uuid" doc:"the ask that triage makes the plan of"`
	QueuePosition *int64   `json:"queue_position,omitempty" doc:"1-based"`
	QueueDepthCap *int64   `json:"queue_depth_cap,omitempty" doc:"-1 is uncapped"`
	RunID         *string  `json:"run_id" format:"uuid" doc:"null until a box has claimed the task"`
}

func (s *Service) start(ctx context.Context, in startIn) (out Started, err error) {
	names, err := in.check()
	if err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = Started{}
		repos := make([]task.Repo, len(names))
		for i, name := range names {
			if repos[i], err = s.enabled(tx, name); err != nil {
				return err
			}
		}
		for _, r := range repos {
			if err := s.requireLiveBox(tx, r, &in); err != nil {
				return err
			}
		}
		switch {
		case in.ReturnContext:
			return s.fanOut(tx, &in, repos, &out)
		case len(repos) > 1:
			return s.ask(tx, &in, repos, &out)
		}
		return s.draft(tx, &in, repos[0], &out)
	})
	return out, err
}

// check returns the names of the repositories, or fault.Invalid about the field
// that is wrong.
func (in *startIn) check() ([]string, error) {
	if in.Ask = strings.TrimSpace(in.Ask); in.Ask == "" {
		return nil, fault.Field("ask", "must not be empty")
	}
	names := in.Repos
	switch {
	case (in.Repo == "") == (len(in.Repos) == 0):
		return nil, fault.Field("repo", "is required, or else repos; not both")
	case in.Repo != "":
		names = []string{in.Repo}
	}
	for i, name := range names {
		at := fmt.Sprintf("repos.%d", i)
		if in.Repo != "" {
			at = "repo"
		}
		if !repoName.MatchString(name) {
			return nil, fault.Field(at, "must be owner/name")
		}
		if slices.Index(names, name) != i {
			return nil, fault.Field(at, "is named twice")
		}
	}
	if in.RequireApproval != nil && (len(names) > 1 || in.ReturnContext) {
		return nil, fault.Field("require_approval",
			"is for a plan over one repository: several are planned by triage, and with return_context nothing is")
	}
	return names, nil
}

// requireLiveBox returns fault.Conflict with the slug no-live-box if no box
// that is online can hold the session of a scout, and fault.Invalid for an
// unknown template.
func (s *Service) requireLiveBox(tx *db.Tx, r task.Repo, in *startIn) error {
	name := in.template(s, r)
	if ok, err := s.Tasks.Templates.Exists(tx, tx.Account, name); err != nil {
		return err
	} else if !ok {
		return fault.Field("template", fmt.Sprintf("there is no template %q", name))
	}
	if ok, err := s.Boxes.LiveBox(tx, r, name); err != nil || ok {
		return err
	}
	return fault.Reason("no-live-box", "A scout needs a live session, and no box that is online can hold one: "+
		"the mode live_session takes an online box with the agent of the template "+
		name+", which must take messages.").With("needed_mode", "live_session").With("template", name)
}

func (in *startIn) template(s *Service, r task.Repo) string {
	return cmp.Or(in.Template, r.Template, s.Tasks.DefaultTemplate)
}

// scout queues the survey of a repository.
func (s *Service) scout(tx *db.Tx, in *startIn, r task.Repo, problem string) (task.Row, error) {
	return s.Tasks.Create(tx, r, task.Spec{Kind: task.KindScout, Sink: task.SinkQueued, Title: title("Survey: ", in.Ask), Problem: problem,
		Template: in.template(s, r), Priority: priority, Confidence: 1})
}

// title returns the first line of an ask, cut to maxTitle characters.
func title(before, ask string) string {
	line, _, _ := strings.Cut(ask, "\n")
	line = before + strings.TrimSpace(line)
	if utf8.RuneCountInString(line) > maxTitle {
		line = string([]rune(line)[:maxTitle-1]) + "…"
	}
	return line
}

func (out *Started) place(tx *db.Tx, s *Service, t *task.Row) error {
	at, err := s.Tasks.Queue.Place(tx, t)
	most := s.Tasks.Queue.Cap()
	out.TaskID, out.QueuePosition, out.QueueDepthCap = &t.ID, &at, &most
	return err
}

// draft begins a plan with the survey of its one repository.
func (s *Service) draft(tx *db.Tx, in *startIn, r task.Repo, out *Started) error {
	t, err := s.scout(tx, in, r, in.Ask+"\n\n"+handInPlan)
	if err != nil {
		return err
	}
	p := row{
		ID: id.New(), AccountID: tx.Account, RepoID: r.ID, Title: title("", in.Ask), Overview: in.Ask, Source: SourceStart, Revision: 1,
		Hold: in.RequireApproval != nil && *in.RequireApproval, ScoutTaskID: &t.ID, CreatedBy: author(tx), CreatedAt: tx.Now,
		RequestedBy: requester(tx, nil),
	}
	if _, err := insert(tx, &p); err != nil {
		return err
	}
	if err := task.JoinPlan(tx, &t, p.ID, nil); err != nil {
		return err
	}
	s.touch(tx, p.ID)
	if err := out.place(tx, s, &t); err != nil {
		return err
	}
	out.PlanID = &p.ID
	return startedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: r.ID}, startedData{Held: p.Hold, TaskID: t.ID, Title: p.Title})
}

// handInPlan tells a scout how its report becomes a plan.
const handInPlan = `Survey the repository and cut this into a plan: parts that are one pull request each, none larger than it must be, each of use when it alone has merged.

End your report with the documents of the plan. Each is a fence whose first line is three backticks (more where the document has fences of its own) and "plan", then the name of the file:

` + "````" + `
` + "```plan overview.md" + `
# What the whole is about

Why, what is there already (with path:line), and how the parts fit together.
` + "```" + `
` + "```plan 01-first-part.md" + `
---
files: [path/of/a/file.go]
---
# What this part does

Everything that whoever does this part must know: they read this document and the repository, not your report.
` + "```" + `
` + "```plan 02-second-part.md" + `
---
depends_on: [01-first-part]
files: [path/of/another.go]
---
# What this part does
` + "```" + `
` + "````" + `

Number the parts in the order in which they would best be read. A part starts when all that it depends on have merged; name only what it cannot be done without. Leave the status file out.`

// fanOut sends a scout into each repository.
func (s *Service) fanOut(tx *db.Tx, in *startIn, repos []task.Repo, out *Started) error {
	fanout := id.New()
	if _, err := insertFanout.Exec(tx, insertFanoutArgs{
		ID: fanout, AccountID: tx.Account, Ask: in.Ask, CreatedBy: author(tx), CreatedAt: tx.Now,
	}); err != nil {
		return err
	}
	for i, r := range repos {
		t, err := s.scout(tx, in, r, in.Ask)
		if err != nil {
			return err
		}
		if _, err := insertScout.Exec(tx, fanout, i, t.ID); err != nil {
			return err
		}
		if out.TaskIDs = append(out.TaskIDs, t.ID); i == 0 {
			if err := out.place(tx, s, &t); err != nil {
				return err
			}
		}
	}
	out.FanoutID = &fanout
	return fannedOutEvent.Record(tx, event.Subject{ID: fanout}, tasksData{TaskIDs: out.TaskIDs})
}

// ask files an ask for a plan over several repositories, which triage makes.
func (s *Service) ask(tx *db.Tx, in *startIn, repos []task.Repo, out *Started) error {
	if _, err := s.Tasks.Batch(tx); err != nil { // without a seat or room in the queue, triage could make no tasks either
		return err
	}
	var b strings.Builder
	b.WriteString(in.Ask + "\n\nThis is to be one plan over these repositories, with a slice for each, ordered by what needs what:\n\n")
	var ids []string
	for _, r := range repos {
		b.WriteString("- " + r.FullName() + "\n")
		ids = append(ids, r.ID)
	}
	askID, err := s.Asks.File(tx, Filing{RepoIDs: ids, Title: title("", in.Ask), Body: b.String()})
	out.RawTaskID = &askID
	return err
}

// FanoutContext holds the findings of the scouts of a fan-out.
type FanoutContext struct {
	_              struct{}      `doc:"What the scouts of a fan-out found, merged." schema:"FanoutContext"`
	FanoutID       string        `json:"fanout_id" format:"uuid" doc:"id of the fan-out"`
	Ask            string        `json:"ask" example:"Replace the footer on every page of the shop." doc:"what the scouts were sent for"`
	Status         string        `json:"status" enum:"running,done" doc:"running: not all scouts are back"`
	StillSurveying []string      `json:"still_surveying" example:"[]" doc:"repositories whose scouts are not back"`
	Repos          []FanoutRepo  `json:"repos" doc:"what each scout found"`
	Claims         []FanoutClaim `json:"claims" doc:"what is backed by citations; what several scouts say is there once"`
	CreatedAt      time.Time     `json:"created_at" doc:"when the scouts were sent"`
}

// FanoutRepo holds the findings of one scout.
type FanoutRepo struct {
	_            struct{} `doc:"What one scout found." schema:"FanoutRepo"`
	Repo         string   `json:"repo" doc:"owner/name"`
	TaskID       string   `json:"task_id" format:"uuid" doc:"the scout's task"`
	Status       string   `json:"status" enum:"surveying,done,failed" example:"done" doc:"failed: its task is over without a report"`
	Summary      *string  `json:"summary" example:"The footer is a template that every page includes." doc:"the first line of its report; null without a report"`
	SplitHints   []string `json:"split_hints" example:"[\"The template first, then the pages that override it.\"]" doc:"how the work may be cut"`
	Handoffs     []string `json:"handoffs" example:"[]" doc:"work it noticed that belongs elsewhere"`
	AccessNeeded []string `json:"access_needed" example:"[]" doc:"what only a person can give"`
}

// FanoutClaim is a claim and the repositories whose scouts make it.
type FanoutClaim struct {
	_         struct{} `doc:"A claim that scouts make, with what it rests on." schema:"FanoutClaim"`
	Text      string   `json:"text" example:"The footer is rendered once, at build time." doc:"the claim"`
	Repos     []string `json:"repos" doc:"where scouts made it, owner/name"`
	Citations []string `json:"citations" example:"[\"acme/web:web/footer.html:12\"]" doc:"repo:path:line"`
}

type fanoutIn struct {
	FanoutID string `json:"fanoutId" format:"uuid" doc:"id of the fan-out"`
}

func (s *Service) context(ctx context.Context, in fanoutIn) (out FanoutContext, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if !id.Valid(in.FanoutID) {
			return fault.Missing("fan-out")
		}
		f, ok, err := selectFanout.Maybe(tx, tx.Account, in.FanoutID)
		if err == nil && !ok {
			err = fault.Missing("fan-out")
		}
		if err != nil {
			return err
		}
		scouts, err := selectScouts.All(tx, f.ID)
		if err != nil {
			return err
		}
		out = FanoutContext{
			FanoutID: f.ID, Ask: f.Ask, Status: "done", StillSurveying: []string{}, Repos: []FanoutRepo{}, Claims: []FanoutClaim{},
			CreatedAt: f.CreatedAt,
		}
		byKey := map[string]int{}
		for _, taskID := range scouts {
			if err := s.merge(tx, taskID, &out, byKey); err != nil {
				return err
			}
		}
		if len(out.StillSurveying) > 0 {
			out.Status = "running"
		}
		return nil
	})
	return out, err
}

// merge adds the findings of one scout. byKey holds the places of claims in
// out, by their keys.
func (s *Service) merge(tx *db.Tx, taskID string, out *FanoutContext, byKey map[string]int) error {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	r, err := s.Tasks.RepoByID(tx, t.RepoID)
	if err != nil {
		return err
	}
	repo := FanoutRepo{
		Repo: r.FullName(), TaskID: t.ID, Status: "failed", SplitHints: []string{}, Handoffs: []string{}, AccessNeeded: []string{},
	}
	switch {
	case t.Status == task.Completed || t.Status == task.Merged:
		repo.Status = "done"
	case !t.Status.Terminal():
		repo.Status = "surveying"
		out.StillSurveying = append(out.StillSurveying, repo.Repo)
	}
	var report string
	if repo.Status == "done" {
		found, ok, err := s.Scouts.Survey(tx, t.ID)
		if err != nil {
			return err
		}
		if ok {
			report, repo.Summary = found.Report, &found.Summary
			repo.SplitHints = append(repo.SplitHints, found.SplitHints...)
			repo.Handoffs = append(repo.Handoffs, found.Handoffs...)
			repo.AccessNeeded = append(repo.AccessNeeded, found.AccessNeeded...)
		}
	}
	out.Repos = append(out.Repos, repo)
	out.addClaims(repo.Repo, claims(report), byKey)
	return nil
}

// addClaims adds the claims of a repository's scout to those of the others.
// Claims with the same key become one.
func (out *FanoutContext) addClaims(repo string, found []claim, byKey map[string]int) {
	for _, c := range found {
		i, known := byKey[c.key]
		if c.key == "" || !known {
			i = len(out.Claims)
			byKey[c.key] = i
			out.Claims = append(out.Claims, FanoutClaim{Text: c.text, Repos: []string{}, Citations: []string{}})
		}
		to := &out.Claims[i]
		if !slices.Contains(to.Repos, repo) {
			to.Repos = append(to.Repos, repo)
		}
		for _, at := range c.cites {
			if qualified := repo + ":" + at.String(); !slices.Contains(to.Citations, qualified) {
				to.Citations = append(to.Citations, qualified)
			}
		}
	}
}
