package github

import (
	"fmt"
	"net/http"
	"path"
	"slices"
)

// Required is a check that must pass.
type Required struct {
	Name string
	App  *App // whose check it must be; nil: anybody's, also a status
}

// Ruleset is rules for branches, of the repository or its organisation.
type Ruleset struct {
	Name            string
	Org             bool     // it is the organisation's
	Branches        []string // patterns, such as "main" or "release/*"; none: the default branch
	Checks          []Required
	Strict          bool // the head must contain the base
	Pull            bool // changes come by pull requests only
	Reviews         int  // approvals by people with write access
	DismissStale    bool
	LastPush        bool // the last push must be approved by another person
	ResolvedThreads bool
	Linear          bool     // no merge commits
	Methods         []string // of merging that are allowed: merge, squash, rebase; none: all
	NoForcePush     bool
	NoDeletion      bool
	Queue           *QueueRule

	id int64
}

// QueueRule makes a branch have a merge queue.
type QueueRule struct {
	Method  string // MERGE, SQUASH, REBASE; empty: MERGE
	Group   int    // entries that are merged together at most; 0: 5
	Minutes int    // that a check may take; 0: 60
}

// Protection is classic protection of one branch.
type Protection struct {
	Checks  []Required
	Strict  bool
	Reviews int
}

// ruleSum is what all rules of a branch demand together.
type ruleSum struct {
	checks       []Required
	strict       bool
	pull         bool
	reviews      int
	dismissStale bool
	lastPush     bool
	threads      bool
	noForce      bool
	noDelete     bool
	queue        *QueueRule
	forbidden    map[string]bool // methods of merging
}

func (x *Ruleset) covers(r *Repo, branch string) bool {
	if len(x.Branches) == 0 {
		return branch == r.branch
	}
	return slices.ContainsFunc(x.Branches, func(p string) bool { ok, _ := path.Match(p, branch); return ok })
}

// rulesOf adds up the rules of a branch.
func (r *Repo) rulesOf(branch string) (sum ruleSum) {
	sum.forbidden = map[string]bool{}
	for _, x := range r.rulesets {
		if !x.covers(r, branch) {
			continue
		}
		sum.checks = append(sum.checks, x.Checks...)
		sum.strict = sum.strict || x.Strict
		sum.pull = sum.pull || x.Pull || x.Reviews > 0 || x.Queue != nil || len(x.Methods) > 0
		sum.reviews = max(sum.reviews, x.Reviews)
		sum.dismissStale = sum.dismissStale || x.DismissStale
		sum.lastPush = sum.lastPush || x.LastPush
		sum.threads = sum.threads || x.ResolvedThreads
		sum.noForce = sum.noForce || x.NoForcePush
		sum.noDelete = sum.noDelete || x.NoDeletion
		for _, m := range []string{"merge", "squash", "rebase"} {
			if x.Linear && m == "merge" || len(x.Methods) > 0 && !slices.Contains(x.Methods, m) {
				sum.forbidden[m] = true
			}
		}
		if x.Queue != nil {
			sum.queue = x.Queue
		}
	}
	if p := r.protections[branch]; p != nil {
		sum.checks = append(sum.checks, p.Checks...)
		sum.strict, sum.reviews = sum.strict || p.Strict, max(sum.reviews, p.Reviews)
		sum.noForce, sum.noDelete, sum.pull = true, true, sum.pull || p.Reviews > 0
	}
	return sum
}

func (r *Repo) protected(branch string) bool {
	return r.protections[branch] != nil || slices.ContainsFunc(r.rulesets, func(x *Ruleset) bool { return x.covers(r, branch) })
}

// showProtection is what a branch tells of classic protection.
func (r *Repo) showProtection(branch, self string) obj {
	p := r.protections[branch]
	if p == nil {
		return obj{"enabled": false, "required_status_checks": obj{
			"enforcement_level": "off", "contexts": []string{}, "checks": []obj{},
		}}
	}
	return obj{"enabled": true, "required_status_checks": obj{
		"enforcement_level": "non_admins", "contexts": each(p.Checks, func(q Required) string { return q.Name }),
		"contexts_url": self + "/protection/required_status_checks/contexts", "strict": p.Strict,
		"url": self + "/protection/required_status_checks",
		"checks": each(p.Checks, func(q Required) obj {
			o := obj{"context": q.Name, "app_id": nil}
			if q.App != nil {
				o["app_id"] = q.App.ID
			}
			return o
		}),
	}}
}

// branchRules lists the active rules of a branch, of rulesets only.
func (c *call) branchRules() (int, any) {
	r, branch := c.repo(), c.params["branch"]
	all := []obj{}
	for _, x := range r.rulesets {
		if !x.covers(r, branch) {
			continue
		}
		for _, rule := range x.rules() {
			rule["ruleset_id"], rule["ruleset_source_type"], rule["ruleset_source"] = x.id, "Repository", r.full()
			if x.Org {
				rule["ruleset_source_type"], rule["ruleset_source"] = "Organization", r.owner.Login
			}
			all = append(all, rule)
		}
	}
	return http.StatusOK, list(c, all)
}

// rules are the single rules of a set in GitHub's form.
func (x *Ruleset) rules() (out []obj) {
	add := func(kind string, parameters obj) {
		o := obj{"type": kind}
		if parameters != nil {
			o["parameters"] = parameters
		}
		out = append(out, o)
	}
	if len(x.Checks) > 0 || x.Strict {
		add("required_status_checks", obj{
			"strict_required_status_checks_policy": x.Strict, "do_not_enforce_on_create": false,
			"required_status_checks": each(x.Checks, func(q Required) obj {
				o := obj{"context": q.Name}
				if q.App != nil {
					o["integration_id"] = q.App.ID
				}
				return o
			}),
		})
	}
	methods := x.Methods
	if len(methods) == 0 {
		methods = []string{"merge", "squash", "rebase"}
	}
	if x.Pull || x.Reviews > 0 || x.DismissStale || x.LastPush || x.ResolvedThreads || len(x.Methods) > 0 {
		add("pull_request", obj{
			"required_approving_review_count": x.Reviews, "dismiss_stale_reviews_on_push": x.DismissStale,
			"require_code_owner_review": false, "require_last_push_approval": x.LastPush,
			"required_review_thread_resolution": x.ResolvedThreads, "allowed_merge_methods": methods,
		})
	}
	if q := x.Queue; q != nil {
		add("merge_queue", obj{
			"check_response_timeout_minutes": q.minutes(), "grouping_strategy": "ALLGREEN", "max_entries_to_build": q.group(),
			"max_entries_to_merge": q.group(), "merge_method": q.method(), "min_entries_to_merge": 1,
			"min_entries_to_merge_wait_minutes": 5,
		})
	}
	for kind, set := range map[string]bool{
		"required_linear_history": x.Linear, "non_fast_forward": x.NoForcePush, "deletion": x.NoDeletion,
	} {
		if set {
			add(kind, nil)
		}
	}
	slices.SortFunc(out, func(a, b obj) int { return len(fmt.Sprint(a["type"])) - len(fmt.Sprint(b["type"])) })
	return out
}

func (q *QueueRule) minutes() int { return or(q.Minutes, 60) }
func (q *QueueRule) group() int   { return or(q.Group, 5) }
func (q *QueueRule) method() string {
	if q.Method == "" {
		return "MERGE"
	}
	return q.Method
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// ruleRefusal returns why the rules of a branch forbid a push, or "".
func (s *Server) ruleRefusal(r *Repo, by who, branch string, c command) string {
	sum := r.rulesOf(branch)
	declined := "push declined due to repository rule violations"
	if r.protections[branch] != nil {
		declined = "protected branch hook declined"
	}
	switch {
	case c.old == zero:
		return ""
	case c.new == zero:
		if sum.noDelete {
			return declined
		}
		return ""
	case sum.noForce && !r.contains(c.new, c.old), sum.pull:
		return declined
	case len(unmet(r, c.new, sum.checks)) > 0:
		return declined
	}
	return ""
}

// behind tells whether a rule wants the base in the head, and it is not.
func (s *Server) behind(p *Pull) bool {
	return p.repo.rulesOf(p.baseRef).strict && !p.repo.contains(p.head, p.repo.head(p.baseRef))
}

// missing lists what the rules of the base still demand, in GitHub's words. By is who
// merges; nil asks for the state only.
func (s *Server) missing(p *Pull, by *who) (out []string) {
	r := p.repo
	sum := r.rulesOf(p.baseRef)
	if sum.queue != nil && by != nil {
		out = append(out, "Changes must be made through the merge queue")
	}
	yes, no := p.approvals()
	if sum.lastPush {
		yes = slices.DeleteFunc(yes, func(a *Account) bool { return s.byMail(r.show(p.head).committer.mail) == a })
	}
	if len(yes) < sum.reviews {
		out = append(out, fmt.Sprintf("At least %d approving review is required by reviewers with write access.", sum.reviews))
	}
	if len(no) > 0 && sum.reviews > 0 {
		out = append(out, "Changes have been requested")
	}
	if sum.threads && slices.ContainsFunc(p.threads, func(t *Thread) bool { return !t.resolved && !t.gone }) {
		out = append(out, "A conversation must be resolved before this pull request can be merged.")
	}
	out = append(out, unmet(r, p.head, sum.checks)...)
	if s.behind(p) {
		out = append(out, "The head branch is not up to date with the base branch.")
	}
	return out
}

// unmet lists the required checks of a commit that are not satisfied. Of one name and
// App the newest counts; a check run and a status of one name must both pass.
func unmet(r *Repo, sha string, checks []Required) (out []string) {
	for _, q := range checks {
		seen := false
		for _, c := range r.latestChecks(sha) {
			if c.name != q.Name || q.App != nil && q.App != c.suite.app {
				continue
			}
			seen = true
			switch {
			case c.status != "completed":
				out = append(out, fmt.Sprintf("Required status check %q is in progress.", q.Name))
			case !satisfies(c.conclusion):
				out = append(out, fmt.Sprintf("Required status check %q is failing.", q.Name))
			}
		}
		for _, t := range r.latestStatuses(sha) {
			if t.context != q.Name || q.App != nil {
				continue
			}
			seen = true
			if t.state != "success" {
				out = append(out, fmt.Sprintf("Required status check %q is %s.", q.Name, t.state))
			}
		}
		if !seen {
			out = append(out, fmt.Sprintf("Required status check %q is expected.", q.Name))
		}
	}
	return out
}
