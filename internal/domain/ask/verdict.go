package ask

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/codehost"
	"yardmaster/internal/policy"
)

// The limits of a verdict.
const (
	maxMinted  = 10
	maxSlices  = 20
	maxLinks   = 20
	maxFiles   = 200
	maxPath    = 500 // characters
	maxProblem = 20_000
	maxReason  = 1000
	maxAnswer  = 256 << 10 // bytes
)

// The highest priorities that triage may give a task. An ask of a person may go
// ahead of the usual 50, one of a program or an agent may not. 100 is for
// callers who create tasks themselves.
const (
	maxPriorityOfPeople   = 80
	maxPriorityOfPrograms = 50
	usualPriority         = 50
)

// verdict is the answer of a judge: one JSON object with the members of its
// kind alone.
type verdict struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`

	Tasks          []piece  `json:"tasks"`            // mint
	CoveringTaskID *string  `json:"covering_task_id"` // drop
	TaskIDs        []string `json:"task_ids"`         // cross_link
	Category       string   `json:"category"`         // escalate
	Plan           *outline `json:"plan"`             // plan
}

type outline struct {
	Title  string  `json:"title"`
	Slices []piece `json:"slices"`
}

// piece is one task, or one slice of a plan.
type piece struct {
	Repo      string   `json:"repo"`
	Kind      string   `json:"kind"`
	Title     string   `json:"title"`
	Problem   string   `json:"problem"`
	Priority  *int64   `json:"priority"`
	DependsOn []int    `json:"depends_on"`
	Files     []string `json:"files"`
}

// The kinds of answers of a judge.
const (
	doMint      = "mint"
	doDrop      = "drop"
	doCrossLink = "cross_link"
	doEscalate  = "escalate"
	doPlan      = "plan"
)

// refusal says why a verdict is not carried out, in words for the judge.
type refusal []string

func (r refusal) Error() string { return strings.Join(r, " ") }

// parse reads a judge's answer. It allows a fence around the object, and
// nothing else.
func parse(answer string) (v verdict, err error) {
	text := strings.TrimSpace(answer)
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		rest = strings.TrimPrefix(rest, "json")
		if body, ok := strings.CutSuffix(rest, "```"); ok {
			text = strings.TrimSpace(body)
		}
	}
	if len(text) > maxAnswer {
		return v, refusal{fmt.Sprintf("The answer is longer than %d bytes.", maxAnswer)}
	}
	if err := json.Unmarshal([]byte(text), &v, json.RejectUnknownMembers(true)); err != nil {
		return v, refusal{"The answer is not one JSON object of the form that was asked for: " + clip(oneLine(err.Error()), 300) + "."}
	}
	return v, nil
}

// facts are the records against which a verdict is checked.
type facts struct {
	repos    map[string]Repo    // by owner/name: the account's repositories that the verdict names
	within   func(string) bool  // whether the ask reaches the repository with the id
	tasks    map[string]TaskRef // by id: the account's tasks that the verdict names
	scopes   policy.Set         // rights of the filer
	priority int64              // highest priority that the filer may have
	span     []string           // ids of the repositories that the one plan must cover; none: no such rule
}

// TaskRef is a task as the check of a verdict needs it.
type TaskRef struct {
	ID, RepoID, Status, Title string
}

// names lists the repositories and tasks that a verdict names.
func (v *verdict) names() (repos, tasks []string) {
	for _, p := range v.pieces() {
		repos = append(repos, p.Repo)
	}
	tasks = append(tasks, v.TaskIDs...)
	if v.CoveringTaskID != nil {
		tasks = append(tasks, *v.CoveringTaskID)
	}
	return repos, tasks
}

func (v *verdict) pieces() []piece {
	if v.Plan != nil {
		return v.Plan.Slices
	}
	return v.Tasks
}

// checking collects the faults of a verdict.
type checking struct {
	facts
	wrong refusal
}

func (c *checking) add(format string, a ...any) {
	if len(c.wrong) < 20 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, a...))
	}
}

// check finds everything that keeps a verdict from being carried out. Its words
// are the same for another account's ids and for unknown ones.
func check(v *verdict, f facts) refusal {
	c := &checking{facts: f}
	kinds := []string{doMint, doDrop, doCrossLink, doEscalate, doPlan}
	if !slices.Contains(kinds, v.Kind) {
		c.add("kind must be one of %s.", strings.Join(kinds, ", "))
		return c.wrong
	}
	if len(f.span) > 0 && v.Kind != doPlan && v.Kind != doEscalate {
		c.add("A person asked for one plan over several repositories: the verdict is a plan, or an escalation if there can be none.")
		return c.wrong
	}
	if n := utf8.RuneCountInString(v.Reason); strings.TrimSpace(v.Reason) == "" || n > maxReason {
		c.add("reason must have 1 to %d characters.", maxReason)
	}
	for _, member := range []struct {
		name, kind string
		there      bool
	}{
		{"tasks", doMint, len(v.Tasks) > 0},
		{"covering_task_id", doDrop, v.CoveringTaskID != nil},
		{"task_ids", doCrossLink, len(v.TaskIDs) > 0},
		{"category", doEscalate, v.Category != ""},
		{"plan", doPlan, v.Plan != nil},
	} {
		switch {
		case member.there && member.kind != v.Kind:
			c.add("%s belongs to a verdict of kind %s, not %s.", member.name, member.kind, v.Kind)
		case !member.there && member.kind == v.Kind && v.Kind != doDrop:
			c.add("a verdict of kind %s needs %s.", v.Kind, member.name)
		}
	}
	if len(c.wrong) > 0 {
		return c.wrong
	}
	switch v.Kind {
	case doMint:
		c.pieces("tasks", v.Tasks, maxMinted)
	case doPlan:
		c.title("plan.title", v.Plan.Title)
		c.pieces("plan.slices", v.Plan.Slices, maxSlices)
		for _, repoID := range f.span {
			if !slices.ContainsFunc(v.Plan.Slices, func(p piece) bool { return c.repos[p.Repo].ID == repoID }) {
				c.add("plan.slices leaves a repository out: each that the ask is about needs a slice.")
				break
			}
		}
		for i, p := range v.Plan.Slices {
			if p.Kind != "" || p.Priority != nil {
				c.add("plan.slices.%d: a slice has no kind and no priority.", i)
			}
		}
	case doDrop:
		if v.CoveringTaskID != nil {
			c.task("covering_task_id", *v.CoveringTaskID)
		}
	case doCrossLink:
		if len(v.TaskIDs) > maxLinks {
			c.add("task_ids must name at most %d tasks.", maxLinks)
		}
		for i, taskID := range v.TaskIDs {
			c.task(fmt.Sprintf("task_ids.%d", i), taskID)
			if slices.Contains(v.TaskIDs[:i], taskID) {
				c.add("task_ids.%d is there twice.", i)
			}
		}
	case doEscalate:
		if !slices.Contains(Categories(), v.Category) {
			c.add("category must be one of %s.", strings.Join(Categories(), ", "))
		}
	}
	return c.wrong
}

// task refuses a task that the ask does not reach, and one that has failed or
// was cancelled.
func (c *checking) task(at, taskID string) {
	t, ok := c.tasks[taskID]
	switch {
	case !ok || !c.within(t.RepoID):
		c.add("%s is not the id of a task that was listed.", at)
	case t.Status == "failed" || t.Status == "cancelled":
		c.add("%s is a task that is %s and covers nothing.", at, t.Status)
	}
}

// scopeFor is the scope that the filer needs for a task of a kind.
var scopeFor = map[string]policy.Scope{
	"work": policy.WriteTasks, "scout": policy.WriteTasks, "setup": policy.WriteTasks,
}

func (c *checking) pieces(at string, all []piece, most int) {
	if len(all) == 0 || len(all) > most {
		c.add("%s must have 1 to %d entries.", at, most)
		return
	}
	if !c.scopes.Has(policy.Scopes(policy.WriteTasks)) {
		c.add("Whoever filed the ask may not create tasks; only drop, cross_link and escalate are left.")
		return
	}
	for i := range all {
		p, at := &all[i], fmt.Sprintf("%s.%d", at, i)
		repo, ok := c.repos[p.Repo]
		switch {
		case !ok || !c.within(repo.ID):
			c.add("%s.repo is not a repository that this ask may reach.", at)
		case !repo.Enabled:
			c.add("%s.repo is a repository that is not enabled.", at)
		}
		switch scope, ok := scopeFor[p.kind()]; {
		case !ok:
			c.add("%s.kind must be one of work, scout, setup.", at)
		case !c.scopes.Has(policy.Scopes(scope)):
			c.add("%s.kind: whoever filed the ask lacks %s, which a task of kind %s needs.", at, scope, p.Kind)
		}
		c.title(at+".title", p.Title)
		if n := utf8.RuneCountInString(p.Problem); strings.TrimSpace(p.Problem) == "" || n > maxProblem {
			c.add("%s.problem must have 1 to %d characters.", at, maxProblem)
		} else if strings.ContainsFunc(p.Problem, func(r rune) bool { return unsafe(r) && r != '\n' && r != '\t' && r != '\r' }) {
			c.add("%s.problem must not hold control characters.", at)
		} else if codehost.OnlyLinks(p.Problem) {
			c.add("%s.problem is nothing but links to issues or pull requests (problem-is-only-link); say what is to be done.", at)
		}
		if p.Priority != nil && (*p.Priority < 0 || *p.Priority > c.priority) {
			c.add("%s.priority must be between 0 and %d.", at, c.priority)
		}
		if len(p.Files) > maxFiles {
			c.add("%s.files must have at most %d entries.", at, maxFiles)
		}
		for k, f := range p.Files {
			if f == "" || path.IsAbs(f) || path.Clean(f) != strings.TrimSuffix(f, "/") || strings.HasPrefix(path.Clean(f), "..") ||
				strings.Contains(f, `\`) || strings.ContainsFunc(f, unsafe) || utf8.RuneCountInString(f) > maxPath {
				c.add("%s.files.%d must be a path inside the repository.", at, k)
			}
		}
		for k, d := range p.DependsOn {
			if d < 0 || d >= len(all) || d == i || slices.Contains(p.DependsOn[:k], d) {
				c.add("%s.depends_on.%d must be the place of another entry, counted from 0, and be there once.", at, k)
			}
		}
	}
	if len(c.wrong) > 0 {
		return
	}
	if _, cycle := order(all); cycle != nil {
		c.add("%s depend on each other in a circle: %s.", at, strings.Trim(fmt.Sprint(cycle), "[]"))
	}
}

func (c *checking) title(at, title string) {
	n := utf8.RuneCountInString(title)
	if strings.TrimSpace(title) == "" || n > maxTitle || strings.ContainsFunc(title, unsafe) {
		c.add("%s must be one line of 1 to %d characters without control characters.", at, maxTitle)
	}
}

// unsafe tells whether a character changes a terminal, or makes text read
// otherwise than it is stored.
func unsafe(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func (p *piece) kind() string {
	if p.Kind == "" {
		return "work"
	}
	return p.Kind
}

func (p *piece) priority() int64 {
	if p.Priority == nil {
		return usualPriority
	}
	return *p.Priority
}

// order puts each entry behind those it depends on. If that is impossible, it
// returns a circle.
func order(all []piece) (sorted, cycle []int) {
	const onPath, done = 1, 2
	state := make([]int, len(all))
	var trail []int
	var visit func(int) bool
	visit = func(i int) bool {
		switch state[i] {
		case done:
			return true
		case onPath:
			cycle = append(slices.Clone(trail[slices.Index(trail, i):]), i)
			return false
		}
		state[i] = onPath
		trail = append(trail, i)
		for _, d := range all[i].DependsOn {
			if !visit(d) {
				return false
			}
		}
		state[i] = done
		trail = trail[:len(trail)-1]
		sorted = append(sorted, i)
		return true
	}
	for i := range all {
		if !visit(i) {
			return nil, cycle
		}
	}
	return sorted, nil
}
