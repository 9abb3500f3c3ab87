package github

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What people do with repositories. A method panics if what it is told to do is
// impossible, such as a commit on a branch that there is not.

// as is a person who acts on the pages, where no token is asked.
func as(a *Account) who { return who{person: a} }

// Name is the present full name of the repository.
func (r *Repo) Name() string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.full()
}

// CloneURL is the repository's address for git.
func (r *Repo) CloneURL() string { return r.s.Web + "/" + r.Name() + ".git" }

// Dir is the bare repository itself.
func (r *Repo) Dir() string { return r.dir }

// Head returns the commit of a branch, or "".
func (r *Repo) Head(branch string) string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.head(branch)
}

// Allow gives a person a role: read, triage, write, maintain, admin; empty takes it.
func (r *Repo) Allow(a *Account, role string) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	action := "added"
	switch {
	case role == "":
		action = "removed"
		delete(r.roles, a.ID)
	case r.roles[a.ID] != "":
		action = "edited"
	}
	payload := obj{"member": s.showUser(a)}
	if role != "" {
		payload["changes"] = obj{"permission": obj{"from": null(r.roles[a.ID]), "to": role}}
		r.roles[a.ID] = role
	}
	s.emit(r, "member", action, s.boss(r.owner), payload)
}

// Methods sets how pull requests may be merged: merge, squash, rebase.
func (r *Repo) Methods(methods ...string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.methods = map[string]bool{}
	for _, m := range methods {
		r.methods[m] = true
	}
}

// DeleteHeads has branches of merged pull requests deleted.
func (r *Repo) DeleteHeads(on bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.deleteHeads = on
}

// Commit puts a commit on a branch as a push of one person, and returns it. A branch
// that there is not begins at the default branch. An empty text removes a file.
func (r *Repo) Commit(by *Account, branch, message string, files map[string]string) string {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	old := r.head(branch)
	parent := old
	if parent == "" {
		parent = r.head(r.branch)
	}
	sha := r.commitFiles(parent, message, pointers(files), s.signature(by))
	r.mustPush(by, branch, old, sha)
	return sha
}

// Amend replaces what a branch has on top of its default branch, or of another base,
// by one commit: a force push.
func (r *Repo) Amend(by *Account, branch, onto, message string, files map[string]string) string {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	base := r.resolve(onto)
	sha := r.commitFiles(base, message, pointers(files), s.signature(by))
	r.mustPush(by, branch, r.head(branch), sha)
	return sha
}

func pointers(files map[string]string) map[string]*string {
	out := map[string]*string{}
	for path, text := range files {
		out[path] = &text
		if text == "" {
			out[path] = nil
		}
	}
	return out
}

// Push moves a branch to any commit, as a force push would. An empty sha deletes it.
func (r *Repo) Push(by *Account, branch, sha string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if sha == "" {
		sha = zero
	}
	r.mustPush(by, branch, r.head(branch), sha)
}

func (r *Repo) mustPush(by *Account, branch, old, sha string) {
	if old == "" {
		old = zero
	}
	m := command{"refs/heads/" + branch, old, sha}
	if err := r.setRef(m.ref, m.new, m.old); err != nil {
		panic(err)
	}
	r.s.refMoved(r, as(by), m, 1)
}

// Rename gives the repository another name. The old one redirects.
func (r *Repo) Rename(by *Account, name string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.rename(r, name, by)
}

// Transfer moves the repository to another account. Installations of the old owner
// lose it; the old name redirects.
func (r *Repo) Transfer(by, to *Account) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	from := r.owner
	before := s.installed(r)
	gone := brief(r)
	s.moved[strings.ToLower(r.full())] = r.ID
	r.owner = to
	delete(s.moved, strings.ToLower(r.full()))
	for _, i := range before {
		if !i.has(r) {
			delete(i.repos, r.ID)
			s.tellInstallation(i, "removed", by, obj{
				"repositories_added": []obj{}, "repositories_removed": []obj{gone}, "repository_selection": "selected", "requester": nil,
			})
		}
	}
	kind := "user"
	if from.Kind == "Organization" {
		kind = "organization"
	}
	owner := s.showUser(from)
	if kind == "organization" {
		owner = s.showOrganization(from)
	}
	s.emit(r, "repository", "transferred", by, obj{"changes": obj{"owner": obj{"from": obj{kind: owner}}}})
}

// Choose makes a branch that there is the default.
func (r *Repo) Choose(by *Account, branch string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.choose(r, branch, by)
}

// Archive archives the repository, or ends that.
func (r *Repo) Archive(by *Account, archived bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.archive(r, archived, by)
}

// Hide makes the repository private or public.
func (r *Repo) Hide(by *Account, private bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.hide(r, private, by)
}

// Delete deletes the repository. Pull requests from it lose their head.repo.
func (r *Repo) Delete(by *Account) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(r, "repository", "deleted", by, obj{})
	for _, i := range s.installs {
		if i.repos[r.ID] {
			delete(i.repos, r.ID)
			s.tellInstallation(i, "removed", by, obj{
				"repositories_added": []obj{}, "repositories_removed": []obj{brief(r)},
				"repository_selection": "selected", "requester": nil,
			})
		}
	}
	delete(s.repos, r.ID)
	for _, p := range s.pulls() {
		if p.headRepo == r {
			p.headRepo = nil
		}
	}
	for _, other := range s.repos {
		if other.fork == r {
			other.fork = nil
		}
	}
}

// Fork forks the repository into an account.
func (r *Repo) Fork(into *Account) *Repo {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.addRepo(into, r.name, NewRepo{Private: r.private, Fork: r})
}

// Rules adds a ruleset.
func (r *Repo) Rules(by *Account, x Ruleset) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	x.id = s.next()
	if x.Name == "" {
		x.Name = "rules"
	}
	r.rulesets = append(r.rulesets, &x)
	s.emit(r, "repository_ruleset", "created", by, obj{"repository_ruleset": s.showRuleset(r, &x)})
}

func (s *Server) showRuleset(r *Repo, x *Ruleset) obj {
	kind, from := "Repository", r.full()
	if x.Org {
		kind, from = "Organization", r.owner.Login
	}
	return obj{
		"id": x.id, "name": x.Name, "target": "branch", "source_type": kind, "source": from, "enforcement": "active",
		"rules": x.rules(), "node_id": nodeID("RRS", x.id), "created_at": stamp(s.seconds()), "updated_at": stamp(s.seconds()),
	}
}

// ClearRules removes all rulesets and classic protection.
func (r *Repo) ClearRules() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.rulesets, r.protections = nil, map[string]*Protection{}
}

// Protect sets classic protection of a branch.
func (r *Repo) Protect(branch string, p Protection) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.protections[branch] = &p
}

// Status sets a commit status: error, failure, pending, success.
func (r *Repo) Status(by *Account, sha, context, state string) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &status{id: s.next(), sha: sha, context: context, state: state, creator: by, created: s.seconds()}
	r.statuses = append(r.statuses, t)
	branches := []obj{}
	for _, b := range r.branches() {
		if r.head(b) == sha {
			branches = append(branches, obj{"name": b, "protected": false, "commit": obj{"sha": sha, "url": s.at(r) + "/commits/" + sha}})
		}
	}
	s.emit(r, "status", "", by, obj{
		"id": t.id, "sha": sha, "name": r.full(), "context": context, "state": state, "description": nil, "target_url": nil,
		"avatar_url": nil, "branches": branches, "commit": s.showCommit(r, sha),
		"created_at": stamp(t.created), "updated_at": stamp(t.created),
	})
	s.queueMoves(r)
}

// Check sets a check run of any App, as another service would: a status of queued,
// in_progress, or a conclusion.
func (r *Repo) Check(app *App, sha, name, result string) *CheckRun {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &CheckRun{ID: s.next(), suite: s.suite(r, app, sha, r.branchOf(sha)), name: name, status: "queued", started: s.seconds()}
	r.checks[k.ID] = k
	if result == "in_progress" {
		k.status = result
	}
	s.checkEvent(k, "created", who{person: app.Bot})
	if result != "queued" && result != "in_progress" {
		s.conclude(k, result)
	}
	return k
}

// Conclude ends a check run.
func (k *CheckRun) Conclude(conclusion string) {
	s := k.suite.repo.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(k, conclusion)
}

func (s *Server) conclude(k *CheckRun, conclusion string) {
	k.status, k.conclusion, k.ended = "completed", conclusion, s.seconds()
	s.checkEnded(k, who{person: k.suite.app.Bot})
}

// CheckState is a check run as a test sees it.
type CheckState struct {
	ID                               int64
	App                              int64
	Name, SHA, Status, Conclusion    string
	ExternalID, Title, Summary, Text string
	Annotations                      []map[string]any
}

// Checks lists all check runs of a commit, oldest first.
func (r *Repo) Checks(sha string) (out []CheckState) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(r.checks)) {
		k := r.checks[n]
		if k.suite.sha != sha {
			continue
		}
		text := func(v any) string {
			t, _ := v.(string)
			return t
		}
		out = append(out, CheckState{
			ID: k.ID, App: k.suite.app.ID, Name: k.name, SHA: sha, Status: k.status, Conclusion: k.conclusion, ExternalID: k.external,
			Title: text(k.title), Summary: text(k.summary), Text: text(k.text), Annotations: k.annotated,
		})
	}
	return out
}

// Rerequest asks the App of a check run to run it again, as the button of a person
// does.
func (r *Repo) Rerequest(by *Account, check int64) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	k := r.checks[check]
	if k == nil {
		panic(fmt.Sprintf("there is no check run %d", check))
	}
	s.checkEvent(k, "rerequested", as(by))
}

// Press presses a button that an App has given its check run.
func (r *Repo) Press(by *Account, check int64, button string) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	k := r.checks[check]
	if k == nil || !slices.ContainsFunc(k.actions, func(a obj) bool { return a["identifier"] == button }) {
		panic(fmt.Sprintf("check run %d has no button %s", check, button))
	}
	k.pressed = button
	s.checkEvent(k, "requested_action", as(by))
}

// RerequestSuite asks an App to run all its checks of a commit again.
func (r *Repo) RerequestSuite(by *Account, app *App, sha string) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.suite(r, app, sha, r.branchOf(sha))
	for _, i := range s.installed(r) {
		if i.App == app && atLeast(i.permissions["checks"], "write") {
			s.emitTo(i, r, "check_suite", "rerequested", by, obj{"check_suite": s.showSuite(x)})
		}
	}
}

// NewRun is a run of Actions that begins.
type NewRun struct {
	Workflow string // its name; empty: CI
	Event    string // empty: push
	SHA      string
	Branch   string
	Jobs     []string // their names; none: build
	Held     bool     // it waits for a person's approval, as those of first contributors do
}

// Run begins a run of a workflow.
func (r *Repo) Run(by *Account, n NewRun) *Run {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Workflow == "" {
		n.Workflow = "CI"
	}
	if n.Event == "" {
		n.Event = "push"
	}
	if len(n.Jobs) == 0 && !n.Held {
		n.Jobs = []string{"build"}
	}
	at := slices.IndexFunc(r.workflows, func(w *Workflow) bool { return w.name == n.Workflow })
	if at < 0 {
		path := ".github/workflows/" + strings.ToLower(strings.ReplaceAll(n.Workflow, " ", "-")) + ".yml"
		r.workflows = append(r.workflows, &Workflow{ID: s.next(), name: n.Workflow, path: path})
		at = len(r.workflows) - 1
	}
	run := &Run{
		ID: s.next(), repo: r, workflow: r.workflows[at], number: len(r.runs) + 1, attempt: 1, event: n.Event, sha: n.SHA,
		branch: n.Branch, actor: by, suite: s.suite(r, s.actions(), n.SHA, n.Branch), held: n.Held,
		created: s.seconds(), updated: s.seconds(),
	}
	r.runs[run.ID] = run
	s.runEvent(run, "requested")
	for _, name := range n.Jobs {
		s.addJob(run, name)
	}
	if n.Held {
		s.runEvent(run, "completed")
	}
	return run
}

// Job returns the newest job of a name.
func (n *Run) Job(name string) *Job {
	n.repo.s.mu.Lock()
	defer n.repo.s.mu.Unlock()
	for _, j := range n.latest() {
		if j.name == name {
			return j
		}
	}
	panic("there is no job " + name)
}

// Attempt is the number of the present attempt.
func (n *Run) Attempt() int {
	n.repo.s.mu.Lock()
	defer n.repo.s.mu.Unlock()
	return n.attempt
}

// Start starts the job.
func (j *Job) Start() {
	s := j.run.repo.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(j)
}

// End ends the job with a conclusion and its log.
func (j *Job) End(conclusion, log string) {
	s := j.run.repo.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.check.status == "queued" {
		s.begin(j)
	}
	s.end(j, conclusion, log)
}

// ActionsApp is the App by which workflows report.
func (s *Server) ActionsApp() *App {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.actions()
}
