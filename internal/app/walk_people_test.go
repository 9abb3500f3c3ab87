package app

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// requestRow is what a person requests of a pull request.
type requestRow struct {
	ID, State string
	PRID      string `db:"pr_id"`
}

var requestsOf = db.Q[requestRow](`SELECT id, state, pr_id FROM host_reviews WHERE account_id = $1 ORDER BY created_at, id`)

// peopleActions are the steps of a walk in which people talk about pull requests, change their
// minds, and push what takes the place of what was there.
func (m *walk) peopleActions() map[string]func() {
	return map[string]func(){
		"comment": m.comment, "request changes": m.requestChanges, "request changes on": m.requestChanges,
		"take a request back": m.takeRequestBack, "take a yes back": m.takeYesBack,
		"rebase": m.rebaseHead, "rewrite the base": m.rewriteBase,
	}
}

func (m *walk) comment() {
	pr := m.anyPull()
	status, out := m.call(m.on(), "POST", "/v1/prs/"+pr.ID+"/comments", map[string]any{"body": "Why so?"})
	switch {
	case (status == 201) != pr.open() || status != 201 && status != 409:
		m.fail("a comment on %+v answers %d %v", pr, status, out)
	case status == 201:
		m.owe("pr.commented", pr.ID)
	}
}

func (m *walk) requestChanges() {
	pr := m.anyPull()
	head := pr.HeadSHA
	if rapid.IntRange(0, 9).Draw(m.r, "stale") == 7 {
		head = strings.Repeat("f", 40)
	}
	status, out := m.call(m.on(), "POST", "/v1/prs/"+pr.ID+"/request-changes", map[string]any{"head_sha": head, "body": "Not so."})
	if want := pr.open() && head == pr.HeadSHA; (status == 201) != want || status != 201 && status != 409 {
		m.fail("a request about head %s of %+v answers %d %v", head, pr, status, out)
	}
	if a := m.was.openAction(pr.ID); status == 201 && a != nil {
		m.seen["requested while "+a.State]++
	}
}

// requested are the requests about a pull request that stand.
func (s *pullState) requested(prID string) (n int) {
	for _, r := range s.requests {
		if r.PRID == prID && r.State == record.ReviewObjects {
			n++
		}
	}
	return n
}

func (m *walk) takeRequestBack() {
	pr := m.pickPull(func(pr *pullRow) bool { return m.was.requested(pr.ID) > 0 })
	status, out := m.call(m.on(), "POST", "/v1/prs/"+pr.ID+"/withdraw-request", map[string]any{})
	if (status == 200) != pr.open() || status != 200 && status != 409 {
		m.fail("a request about %+v is taken back: %d %v", pr, status, out)
	}
}

// takeYesBack takes back what a person has ordered, unless the host was told of it.
func (m *walk) takeYesBack() {
	var ordered []*pullRow
	for _, pr := range m.was.pullsWith(record.ActionApproved) {
		if a := m.was.openAction(pr.ID); a.DecidedBy != nil && *a.DecidedBy != "policy" {
			ordered = append(ordered, pr)
		}
	}
	if len(ordered) == 0 {
		panic(idle{})
	}
	pr := one(m, ordered, "order")
	a := m.was.openAction(pr.ID)
	status, out := m.call(m.on(), "POST", "/v1/prs/"+pr.ID+"/unapprove", map[string]any{"head_sha": pr.HeadSHA})
	if (status == 200) == a.Called || status != 200 && status != 409 {
		m.fail("the yes %+v is taken back: %d %v", a, status, out)
	}
	if status == 200 {
		m.owe("approval.skipped", a.ID)
	}
}

// rebaseHead has a person put the change of a head on the base as it is.
func (m *walk) rebaseHead() {
	pr := m.pickPull((*pullRow).open)
	r := m.hostRepo(pr.RepoID)
	if m.forge.at(r, pr.HeadRef) != pr.HeadSHA || m.forge.landed(r, pr.HeadSHA) != "" {
		panic(idle{})
	}
	m.forge.rebase(r, pr.HeadRef)
	m.tell(pr.RepoID, pr.HeadRef)
}

// rewriteBase takes the last commit of a base away, which branches may have by now.
func (m *walk) rewriteBase() {
	repoID := one(m, m.repos, "repo")
	r := m.hostRepo(repoID)
	tip := m.forge.at(r, "main")
	merged := func(pr pullRow) bool { return pr.MergeSHA != nil && *pr.MergeSHA == tip }
	if slices.ContainsFunc(m.was.pulls, merged) || !m.forge.drop(r) { // what somebody has brought in by hand is no merge to drop
		panic(idle{})
	}
	m.tell(repoID, "main")
}

// oweRequests expects an audit row for each request, and for the end of one that no newer
// request of the same person takes the place of.
func (m *walk) oweRequests(was, now *state) {
	before := byID(was.requests, func(r requestRow) string { return r.ID })
	anew := map[string]bool{}
	for _, r := range now.requests {
		if _, known := before[r.ID]; !known {
			m.owe("pr.changes_requested", r.PRID)
			anew[r.PRID] = true
		}
	}
	for _, r := range now.requests {
		if before[r.ID].State == record.ReviewObjects && r.State != record.ReviewObjects && !anew[r.PRID] {
			m.owe("pr.request_withdrawn", r.PRID)
			m.seen["request "+r.State]++
		}
	}
}

// oweCarried expects the audit row of a question that a new head takes over.
func (m *walk) oweCarried(before, a *actionRow) {
	if before.ID == "" || before.HeadSHA == a.HeadSHA {
		return
	}
	if m.seen["carried"]++; before.DecidedBy == nil {
		m.owe("approval.asked", a.ID) // it is told anew
	}
}

// rebase puts the change of a branch on the base as it is.
func (f *forge) rebase(r codehost.Repo, branch string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.repos[r]
	was := g.branches[branch]
	sha := f.commit(g, g.branches["main"])
	g.changes[sha], g.guarded[sha] = g.change(was), g.guarded[was]
	g.branches[branch] = sha
}

// drop takes the last commit of the base away, and puts another one in its place; false if
// that commit is a merge.
func (f *forge) drop(r codehost.Repo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.repos[r]
	tip := g.branches["main"]
	if len(g.parents[tip]) != 1 {
		return false
	}
	for _, squash := range g.squashed {
		if squash == tip {
			return false
		}
	}
	g.branches["main"] = f.commit(g, g.parents[tip][0])
	return true
}

// change names what a head changes: the same after a rebase.
func (g *forgeRepo) change(head string) string {
	if is := g.changes[head]; is != "" {
		return is
	}
	return "change-" + head
}

// lost are those of some commits that a base has no more, and a head has.
func (g *forgeRepo) lost(base, head string, had []string) []string {
	return slices.DeleteFunc(slices.Clone(had), func(sha string) bool {
		_, known := g.parents[sha]
		return !known || g.has(base, sha) || !g.has(head, sha)
	})
}
