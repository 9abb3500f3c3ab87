package github

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/id"
)

// Workflow is a workflow of Actions.
type Workflow struct {
	ID   int64
	name string
	path string
}

// Run is a run of a workflow.
type Run struct {
	ID int64

	repo     *Repo
	workflow *Workflow
	number   int
	attempt  int
	event    string
	sha      string
	branch   string
	actor    *Account
	suite    *Suite
	jobs     []*Job // of all attempts
	created  time.Time
	updated  time.Time
	held     bool // it waits for a person to approve it
}

// Job is a job of one attempt of a run.
type Job struct {
	ID int64

	run     *Run
	attempt int
	name    string
	check   *CheckRun
	log     string
	created time.Time
}

// actions is the App that GitHub's own workflows report by.
func (s *Server) actions() *App {
	for _, a := range s.apps {
		if a.Slug == "github-actions" {
			return a
		}
	}
	return s.addApp(s.addAccount("github", "Organization"), manifest{
		Name: "GitHub Actions", URL: "https://help.github.com/en/actions", DefaultPermissions: map[string]string{"actions": "write"},
	})
}

// latest are the jobs of the present attempt.
func (n *Run) latest() []*Job {
	return slices.DeleteFunc(slices.Clone(n.jobs), func(j *Job) bool { return j.attempt != n.attempt })
}

// result is the status of the present attempt, and its conclusion if it has ended.
func (n *Run) result() (string, any) {
	if n.held {
		return "completed", "action_required"
	}
	all := each(n.latest(), func(j *Job) *CheckRun { return j.check })
	conclusion := "success"
	begun, open := false, false
	for _, c := range all {
		begun = begun || c.status != "queued"
		open = open || c.status != "completed"
		if c.conclusion != "" && !satisfies(c.conclusion) && conclusion == "success" {
			conclusion = c.conclusion
		}
	}
	switch {
	case !begun:
		return "queued", nil
	case open:
		return "in_progress", nil
	}
	return "completed", conclusion
}

func (s *Server) showRun(n *Run) obj {
	r := n.repo
	at, page := fmt.Sprintf("%s/actions/runs/%d", s.at(r), n.ID), fmt.Sprintf("%s/actions/runs/%d", s.page(r), n.ID)
	status, conclusion := n.result()
	return obj{
		"id": n.ID, "name": n.workflow.name, "node_id": nodeID("WFR", n.ID), "head_branch": n.branch, "head_sha": n.sha,
		"path": n.workflow.path, "display_title": r.show(n.sha).message, "run_number": n.number, "run_attempt": n.attempt,
		"event": n.event, "status": status, "conclusion": conclusion, "workflow_id": n.workflow.ID, "check_suite_id": n.suite.ID,
		"check_suite_node_id": nodeID("CS", n.suite.ID), "url": at, "html_url": page, "pull_requests": s.minimalPulls(r, n.sha),
		"created_at": stamp(n.created), "updated_at": stamp(n.updated), "run_started_at": stamp(n.updated),
		"actor": s.showUser(n.actor), "triggering_actor": s.showUser(n.actor), "jobs_url": at + "/jobs", "logs_url": at + "/logs",
		"check_suite_url": fmt.Sprintf("%s/check-suites/%d", s.at(r), n.suite.ID), "artifacts_url": at + "/artifacts",
		"cancel_url": at + "/cancel", "rerun_url": at + "/rerun", "previous_attempt_url": nil, "referenced_workflows": []obj{},
		"workflow_url": fmt.Sprintf("%s/actions/workflows/%d", s.at(r), n.workflow.ID), "head_commit": s.simpleCommit(r, n.sha),
		"repository": s.minimalRepo(r), "head_repository": s.minimalRepo(r),
	}
}

func (s *Server) showWorkflow(r *Repo, w *Workflow) obj {
	at := fmt.Sprintf("%s/actions/workflows/%d", s.at(r), w.ID)
	return obj{
		"id": w.ID, "node_id": nodeID("W", w.ID), "name": w.name, "path": w.path, "state": "active", "created_at": stamp(r.created),
		"updated_at": stamp(r.created), "url": at, "html_url": s.page(r) + "/blob/" + r.branch + "/" + w.path,
		"badge_url": s.page(r) + "/workflows/" + strings.ReplaceAll(w.name, " ", "%20") + "/badge.svg",
	}
}

func (s *Server) showJob(j *Job) obj {
	r, k := j.run.repo, j.check
	at := fmt.Sprintf("%s/actions/jobs/%d", s.at(r), j.ID)
	o := obj{
		"id": j.ID, "run_id": j.run.ID, "workflow_name": j.run.workflow.name, "head_branch": j.run.branch, "run_attempt": j.attempt,
		"run_url": fmt.Sprintf("%s/actions/runs/%d", s.at(r), j.run.ID), "node_id": nodeID("JOB", j.ID), "head_sha": j.run.sha,
		"url": at, "html_url": fmt.Sprintf("%s/actions/runs/%d/job/%d", s.page(r), j.run.ID, j.ID), "status": k.status,
		"conclusion": null(k.conclusion), "created_at": stamp(j.created), "started_at": stamp(k.started), "completed_at": stamp(k.ended),
		"name": j.name, "steps": []obj{}, "check_run_url": fmt.Sprintf("%s/check-runs/%d", s.at(r), k.ID),
		"labels": []string{"ubuntu-latest"}, "runner_id": nil, "runner_name": nil, "runner_group_id": nil, "runner_group_name": nil,
	}
	if k.status != "queued" {
		o["runner_id"], o["runner_name"], o["runner_group_id"], o["runner_group_name"] = 1, "GitHub Actions 1", 0, "GitHub Actions"
		step := obj{"name": "Run", "number": 1, "status": k.status, "conclusion": nil}
		step["started_at"], step["completed_at"] = stamp(k.started), stamp(k.ended)
		if k.conclusion == "success" || k.conclusion == "failure" || k.conclusion == "skipped" || k.conclusion == "cancelled" {
			step["conclusion"] = k.conclusion
		}
		o["steps"] = []obj{step}
	}
	return o
}

func (s *Server) runEvent(n *Run, action string) {
	s.emit(n.repo, "workflow_run", action, n.actor, obj{
		"workflow_run": s.showRun(n), "workflow": s.showWorkflow(n.repo, n.workflow),
	})
}

func (s *Server) jobEvent(j *Job, action string) {
	s.emit(j.run.repo, "workflow_job", action, j.run.actor, obj{"workflow_job": s.showJob(j)})
}

// addJob puts a job into the present attempt of a run.
func (s *Server) addJob(n *Run, name string) *Job {
	k := &CheckRun{ID: s.next(), suite: n.suite, name: name, status: "queued", started: s.seconds(), external: id.Random()}
	j := &Job{ID: k.ID, run: n, attempt: n.attempt, name: name, check: k, created: s.seconds()}
	k.details = fmt.Sprintf("%s/actions/runs/%d/job/%d", s.page(n.repo), n.ID, j.ID)
	n.repo.checks[k.ID], n.repo.jobs[j.ID] = k, j
	n.jobs = append(n.jobs, j)
	s.checkEvent(k, "created", who{person: n.actor})
	s.jobEvent(j, "queued")
	return j
}

// begin starts a job.
func (s *Server) begin(j *Job) {
	was, _ := j.run.result()
	j.check.status, j.check.started = "in_progress", s.seconds()
	if was == "queued" {
		s.runEvent(j.run, "in_progress")
	}
	s.jobEvent(j, "in_progress")
}

// end ends a job, and its run if that was the last one.
func (s *Server) end(j *Job, conclusion, log string) {
	j.check.status, j.check.conclusion, j.check.ended = "completed", conclusion, s.seconds()
	j.log, j.run.updated = log, s.seconds()
	s.jobEvent(j, "completed")
	s.checkEnded(j.check, who{person: j.run.actor})
	if status, _ := j.run.result(); status == "completed" {
		s.runEvent(j.run, "completed")
	}
}

// run is the run of the path.
func (c *call) run() *Run {
	n := c.repo().runs[c.number("run_id")]
	if n == nil {
		c.notFound()
	}
	return n
}

func (c *call) job() *Job {
	j := c.repo().jobs[c.number("job_id")]
	if j == nil {
		c.notFound()
	}
	return j
}

func (c *call) getRun() (int, any) { return http.StatusOK, c.showRun(c.run()) }

func (c *call) getJob() (int, any) { return http.StatusOK, c.showJob(c.job()) }

func (c *call) listRuns() (int, any) {
	r := c.repo()
	var all []*Run
	for _, n := range r.runs {
		status, conclusion := n.result()
		want := c.query("status")
		if (c.query("head_sha") == "" || c.query("head_sha") == n.sha) && (c.query("branch") == "" || c.query("branch") == n.branch) &&
			(c.query("event") == "" || c.query("event") == n.event) && (want == "" || want == status || want == conclusion) {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *Run) int { return int(b.ID - a.ID) })
	return http.StatusOK, obj{"total_count": len(all), "workflow_runs": each(list(c, all), c.showRun)}
}

func (c *call) listJobs() (int, any) {
	n := c.run()
	all := n.latest()
	if c.query("filter") == "all" {
		all = n.jobs
	}
	return http.StatusOK, obj{"total_count": len(all), "jobs": each(list(c, all), c.showJob)}
}

// rerunnable ends the call for a run that cannot be run again.
func (c *call) rerunnable(n *Run) {
	if status, _ := n.result(); status != "completed" {
		c.refuse(http.StatusForbidden, "This workflow is already running")
	}
	if c.now().Sub(n.created) > 30*24*time.Hour {
		c.refuse(http.StatusForbidden, "Unable to retry this workflow run because it was created over a month ago")
	}
}

// rerun begins another attempt: jobs that run again are new, the others are copied.
func (c *call) rerun(n *Run, again func(*Job) bool) (int, any) {
	former := n.latest()
	n.attempt++
	n.updated = c.seconds()
	n.actor = c.who.account()
	for _, j := range former {
		if again(j) {
			c.addJob(n, j.name)
			continue
		}
		twin, k := *j, *j.check
		k.ID = c.next()
		twin.ID, twin.attempt, twin.check = k.ID, n.attempt, &k
		n.repo.checks[k.ID], n.repo.jobs[twin.ID] = &k, &twin
		n.jobs = append(n.jobs, &twin)
	}
	c.runEvent(n, "requested")
	return http.StatusCreated, obj{}
}

func (c *call) rerunFailed() (int, any) {
	n := c.run()
	c.rerunnable(n)
	bad := func(j *Job) bool { return !satisfies(j.check.conclusion) }
	if !slices.ContainsFunc(n.latest(), bad) {
		c.refuse(http.StatusForbidden, "This workflow run has no failed jobs")
	}
	return c.rerun(n, bad)
}

func (c *call) rerunJob() (int, any) {
	j := c.job()
	c.rerunnable(j.run)
	return c.rerun(j.run, func(other *Job) bool { return other.name == j.name })
}

// keptLogs is how long logs are kept by default.
const keptLogs = 90 * 24 * time.Hour

// jobLog redirects to the log at another address, which is good for a minute.
func (c *call) jobLog() (int, any) {
	j := c.job()
	switch {
	case j.check.status != "completed":
		c.notFound()
	case c.now().Sub(j.created) > keptLogs:
		c.refuse(http.StatusGone, "Server Error")
	}
	key := id.Opaque()
	c.logs[key] = j.log
	c.header.Set("Location", fmt.Sprintf("%s/logs/%d.txt?sig=%s&se=%d", c.storage, j.ID, key, c.now().Add(time.Minute).Unix()))
	return http.StatusFound, nil
}

// serveLog serves logs. Like the storage of GitHub, it refuses requests that bring
// credentials of another service.
func (s *Server) serveLog(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	text, ok := s.logs[r.URL.Query().Get("sig")]
	late := number(r.URL.Query().Get("se"), 0) < int(s.now().Unix())
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "":
		http.Error(w, "InvalidAuthenticationInfo", http.StatusBadRequest)
	case !ok || late:
		http.Error(w, "AuthenticationFailed", http.StatusForbidden)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.ServeContent(w, r, "log.txt", time.Time{}, strings.NewReader(text))
	}
}
