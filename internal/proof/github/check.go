package github

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Suite is the check runs of one App for a commit.
type Suite struct {
	ID int64

	repo    *Repo
	app     *App
	branch  string
	before  string
	sha     string
	created time.Time
	updated time.Time
	asked   bool // it was requested of the App, which has not begun
}

// CheckRun is a check run.
type CheckRun struct {
	ID int64

	suite      *Suite
	name       string
	external   string
	details    string
	status     string
	conclusion string
	started    time.Time
	ended      time.Time
	title      any
	summary    any
	text       any
	notes      int
	annotated  []obj
	actions    []obj
	pressed    string // the button that was pressed last
}

// status is a commit status, of which the newest of a context counts.
type status struct {
	id          int64
	sha         string
	context     string
	state       string // error, failure, pending, success
	description string
	target      string
	creator     *Account
	created     time.Time
}

// satisfies tells whether a conclusion is good enough for a required check.
func satisfies(conclusion string) bool {
	return conclusion == "success" || conclusion == "neutral" || conclusion == "skipped"
}

// suite returns the suite of an App for a commit, and makes it if there is none.
func (s *Server) suite(r *Repo, app *App, sha, branch string) *Suite {
	for _, x := range r.suites {
		if x.app == app && x.sha == sha {
			return x
		}
	}
	x := &Suite{ID: s.next(), repo: r, app: app, sha: sha, branch: branch, before: zero, created: s.seconds(), updated: s.seconds()}
	r.suites = append(r.suites, x)
	return x
}

// requestSuites asks every App that may write checks for a suite of a pushed commit.
func (s *Server) requestSuites(r *Repo, branch, before, sha string, sender *Account) {
	for _, i := range s.installed(r) {
		if !atLeast(i.permissions["checks"], "write") {
			continue
		}
		x := s.suite(r, i.App, sha, branch)
		x.before, x.asked = before, true
		s.emitTo(i, r, "check_suite", "requested", sender, obj{"check_suite": s.showSuite(x)})
	}
}

// runs are the check runs of a suite, by id. Of one name, the newest counts.
func (x *Suite) runs() (out []*CheckRun) {
	for _, n := range slices.Sorted(maps.Keys(x.repo.checks)) {
		if c := x.repo.checks[n]; c.suite == x {
			out = append(out, c)
		}
	}
	return out
}

func newest(all []*CheckRun) []*CheckRun {
	last := map[string]*CheckRun{}
	for _, c := range all {
		last[fmt.Sprintf("%d %s", c.suite.app.ID, c.name)] = c
	}
	return slices.SortedFunc(maps.Values(last), func(a, b *CheckRun) int { return int(a.ID - b.ID) })
}

// result is the status of a suite, and its conclusion when all runs have ended.
func (x *Suite) result() (string, any) {
	all := newest(x.runs())
	if len(all) == 0 {
		return "queued", nil
	}
	worst := "success"
	rank := []string{"success", "neutral", "skipped", "cancelled", "timed_out", "action_required", "failure"}
	for _, c := range all {
		if c.status != "completed" {
			return "in_progress", nil
		}
		if slices.Index(rank, c.conclusion) > slices.Index(rank, worst) {
			worst = c.conclusion
		}
	}
	return "completed", worst
}

func (s *Server) showSuite(x *Suite) obj {
	status, conclusion := x.result()
	at := fmt.Sprintf("%s/check-suites/%d", s.at(x.repo), x.ID)
	return obj{
		"id": x.ID, "node_id": nodeID("CS", x.ID), "head_branch": null(x.branch), "head_sha": x.sha, "status": status,
		"conclusion": conclusion, "url": at, "before": x.before, "after": x.sha, "pull_requests": s.minimalPulls(x.repo, x.sha),
		"app": s.appObject(x.app), "repository": s.minimalRepo(x.repo), "created_at": stamp(x.created), "updated_at": stamp(x.updated),
		"head_commit": s.simpleCommit(x.repo, x.sha), "latest_check_runs_count": len(newest(x.runs())),
		"check_runs_url": at + "/check-runs",
		"rerequestable":  true, "runs_rerequestable": true,
	}
}

func (s *Server) showCheck(c *CheckRun) obj {
	r := c.suite.repo
	at := fmt.Sprintf("%s/check-runs/%d", s.at(r), c.ID)
	page := fmt.Sprintf("%s/runs/%d", s.page(r), c.ID)
	details := c.details
	if details == "" {
		details = page
	}
	return obj{
		"id": c.ID, "head_sha": c.suite.sha, "node_id": nodeID("CR", c.ID), "external_id": c.external, "url": at, "html_url": page,
		"details_url": details, "status": c.status, "conclusion": null(c.conclusion), "started_at": stamp(c.started),
		"completed_at": stamp(c.ended), "name": c.name, "check_suite": obj{"id": c.suite.ID}, "app": s.appObject(c.suite.app),
		"pull_requests": s.minimalPulls(r, c.suite.sha),
		"output": obj{
			"title": c.title, "summary": c.summary, "text": c.text, "annotations_count": c.notes, "annotations_url": at + "/annotations",
		},
	}
}

// hookCheck is a check run in deliveries, whose suite is whole.
func (s *Server) hookCheck(c *CheckRun) obj {
	o := s.showCheck(c)
	suite := s.showSuite(c.suite)
	delete(suite, "head_commit")
	o["check_suite"] = suite
	return o
}

type checkIn struct {
	Name       *string
	HeadSHA    string     `json:"head_sha"`
	DetailsURL *string    `json:"details_url"`
	ExternalID *string    `json:"external_id"`
	Status     *string    `json:"status"`
	StartedAt  *time.Time `json:"started_at"`
	Conclusion *string
	CompletedA *time.Time `json:"completed_at"`
	Output     *struct {
		Title, Summary, Text *string
		Annotations          []obj
	}
	Actions []obj
}

func (c *call) createCheck() (int, any) {
	r := c.repo()
	var in checkIn
	c.in(&in)
	if in.Name == nil || in.HeadSHA == "" {
		c.invalid(wrong("CheckRun", "name", "missing_field"))
	}
	if r.resolve(in.HeadSHA) != in.HeadSHA {
		c.refuse(http.StatusUnprocessableEntity, "No commit found for SHA: %s", in.HeadSHA)
	}
	x := c.suite(r, c.who.inst.App, in.HeadSHA, r.branchOf(in.HeadSHA))
	k := &CheckRun{ID: c.next(), suite: x, status: "queued", started: c.seconds()}
	c.apply(k, in)
	r.checks[k.ID] = k
	c.checkEvent(k, "created", c.who)
	if k.status == "completed" {
		c.checkEnded(k, c.who)
	}
	return http.StatusCreated, c.showCheck(k)
}

// branchOf returns a branch with a commit as its head, or "".
func (r *Repo) branchOf(sha string) string {
	for _, b := range r.branches() {
		if r.head(b) == sha {
			return b
		}
	}
	return ""
}

// apply sets what a request says of a check run, by GitHub's rules.
func (c *call) apply(k *CheckRun, in checkIn) {
	if in.Name != nil {
		k.name = *in.Name
	}
	if in.ExternalID != nil {
		k.external = *in.ExternalID
	}
	if in.DetailsURL != nil {
		k.details = *in.DetailsURL
	}
	if o := in.Output; o != nil {
		for _, text := range []*string{o.Summary, o.Text} {
			if text != nil && len(*text) > 65535 {
				c.invalid(custom("CheckRun", "Only 65535 characters are allowed; "+fmt.Sprint(len(*text))+" were supplied."))
			}
		}
		if len(o.Annotations) > 50 {
			c.invalid(custom("CheckRun", "No more than 50 annotations are allowed in one request."))
		}
		if o.Title != nil {
			k.title = *o.Title
		}
		if o.Summary != nil {
			k.summary = *o.Summary
		}
		if o.Text != nil {
			k.text = *o.Text
		}
		k.notes += len(o.Annotations)
		k.annotated = append(k.annotated, o.Annotations...)
	}
	if in.Actions != nil {
		k.actions = in.Actions
	}
	if in.Status != nil {
		if *in.Status == "completed" && (in.Conclusion == nil || *in.Conclusion == "") && k.conclusion == "" {
			c.invalid(wrong("CheckRun", "conclusion", "missing_field"))
		}
		if k.status = *in.Status; k.status != "completed" {
			k.conclusion, k.ended = "", zeroTime
		}
	}
	if in.StartedAt != nil {
		k.started = *in.StartedAt
	}
	if in.Conclusion != nil && *in.Conclusion != "" {
		k.status, k.conclusion, k.ended = "completed", *in.Conclusion, c.seconds()
		if in.CompletedA != nil {
			k.ended = *in.CompletedA
		}
	}
	k.suite.updated, k.suite.asked = c.seconds(), false
}

func (c *call) check() *CheckRun {
	k := c.repo().checks[c.number("check_run_id")]
	if k == nil {
		c.notFound()
	}
	return k
}

func (c *call) updateCheck() (int, any) {
	k := c.check()
	if k.suite.app != c.who.inst.App {
		c.refuse(http.StatusForbidden, "Invalid app_id `%d` - check run can only be modified by the GitHub App that created it.", c.who.inst.App.ID)
	}
	var in checkIn
	c.in(&in)
	before := k.status
	c.apply(k, in)
	if k.status == "completed" && before != "completed" {
		c.checkEnded(k, c.who)
	}
	return http.StatusOK, c.showCheck(k)
}

func (c *call) getCheck() (int, any) { return http.StatusOK, c.showCheck(c.check()) }

// rerequest asks the App of a check run for another one; nothing else happens.
func (c *call) rerequest() (int, any) {
	c.checkEvent(c.check(), "rerequested", c.who)
	return http.StatusCreated, obj{}
}

// checkEvent tells of a check run. That one is asked for again only its App is told.
func (s *Server) checkEvent(k *CheckRun, action string, by who) {
	r := k.suite.repo
	for _, i := range s.installed(r) {
		only := action == "rerequested" || action == "requested_action"
		if only && (i.App != k.suite.app || !atLeast(i.permissions["checks"], "write")) {
			continue
		}
		payload := obj{"check_run": s.hookCheck(k)}
		if action == "requested_action" {
			payload["requested_action"] = obj{"identifier": k.pressed}
		}
		s.emitTo(i, r, "check_run", action, by.account(), payload)
	}
}

// checkEnded tells that a check run has ended, and its suite if that was the last.
func (s *Server) checkEnded(k *CheckRun, by who) {
	s.checkEvent(k, "completed", by)
	if status, _ := k.suite.result(); status == "completed" {
		s.emit(k.suite.repo, "check_suite", "completed", by.account(), obj{"check_suite": s.showSuite(k.suite)})
	}
	s.queueMoves(k.suite.repo)
}

// latestChecks lists the check runs of a commit, the newest of each App and name.
func (r *Repo) latestChecks(sha string) []*CheckRun {
	var all []*CheckRun
	for _, n := range slices.Sorted(maps.Keys(r.checks)) {
		if c := r.checks[n]; c.suite.sha == sha {
			all = append(all, c)
		}
	}
	return newest(all)
}

// latestStatuses lists the statuses of a commit, the newest of each context.
func (r *Repo) latestStatuses(sha string) []*status {
	last := map[string]*status{}
	for _, t := range r.statuses {
		if t.sha == sha {
			last[t.context] = t
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b *status) int { return cmp.Compare(a.id, b.id) })
}

// commitOf is the commit of the path.
func (c *call) commitOf(r *Repo) string {
	sha := r.resolve(c.params["ref"])
	if sha == "" {
		c.refuse(http.StatusUnprocessableEntity, "No commit found for SHA: %s", c.params["ref"])
	}
	return sha
}

func (c *call) listChecks() (int, any) {
	r := c.repo()
	sha := c.commitOf(r)
	all := r.latestChecks(sha)
	if c.query("filter") == "all" {
		all = nil
		for _, n := range slices.Sorted(maps.Keys(r.checks)) {
			if r.checks[n].suite.sha == sha {
				all = append(all, r.checks[n])
			}
		}
	}
	all = slices.DeleteFunc(all, func(k *CheckRun) bool {
		name, app, status := c.query("check_name"), c.query("app_id"), c.query("status")
		return name != "" && name != k.name || app != "" && app != fmt.Sprint(k.suite.app.ID) || status != "" && status != k.status
	})
	slices.Reverse(all)
	return http.StatusOK, obj{"total_count": len(all), "check_runs": each(list(c, all), c.showCheck)}
}

func (c *call) listSuites() (int, any) {
	r := c.repo()
	sha := c.commitOf(r)
	all := slices.DeleteFunc(slices.Clone(r.suites), func(x *Suite) bool { return x.sha != sha })
	return http.StatusOK, obj{"total_count": len(all), "check_suites": each(list(c, all), c.showSuite)}
}

func (s *Server) showStatus(r *Repo, t *status) obj {
	return obj{
		"url": s.at(r) + "/statuses/" + t.sha, "avatar_url": nil, "id": t.id, "node_id": nodeID("SC", t.id), "state": t.state,
		"description": null(t.description), "target_url": null(t.target), "context": t.context,
		"created_at": stamp(t.created), "updated_at": stamp(t.created),
	}
}

func (c *call) combinedStatus() (int, any) {
	r := c.repo()
	sha := c.commitOf(r)
	all := r.latestStatuses(sha)
	state := "success"
	for _, t := range all {
		switch {
		case t.state == "error" || t.state == "failure":
			state = "failure"
		case t.state == "pending" && state == "success":
			state = "pending"
		}
	}
	if len(all) == 0 {
		state = "pending"
	}
	return http.StatusOK, obj{
		"state": state, "sha": sha, "total_count": len(all),
		"statuses":   each(list(c, all), func(t *status) obj { return c.showStatus(r, t) }),
		"repository": c.minimalRepo(r), "commit_url": c.at(r) + "/commits/" + sha, "url": c.at(r) + "/commits/" + sha + "/status",
	}
}
