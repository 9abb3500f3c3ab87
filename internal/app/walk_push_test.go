package app

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/codehost"
	"yardmaster/internal/domain/pull/record"
)

// tell has a node note that branches were pushed. What is not told is found
// when the repositories are reconciled.
func (m *walk) tell(repoID string, branches ...string) {
	if rapid.IntRange(0, 7).Draw(m.r, "told") == 7 {
		m.untold = true
		return
	}
	m.tellOn(m.on(), m.hostRepo(repoID), "git", branches...)
}

func (m *walk) tellOn(n *node, r codehost.Repo, who string, branches ...string) {
	e := codehost.PushEvent{Repo: r, Who: who}
	for _, b := range branches {
		e.Updates = append(e.Updates, codehost.RefUpdate{Ref: "refs/heads/" + b, New: m.forge.at(r, b)})
	}
	if err := n.parts.repo.OnPush(m.as(), e); err != nil {
		m.complain(err)
	}
}

// reconcile is what a node does when it starts, and now and then.
func (m *walk) reconcile() { m.reconcileOn(m.on()) }

func (m *walk) reconcileOn(n *node) {
	n.parts.repo.Pass(context.Background(), map[string]time.Time{})
	m.untold = false
}

// pushBase moves the base by a commit, with which some heads conflict.
func (m *walk) pushBase() {
	repoID := one(m, m.repos, "repo")
	r := m.hostRepo(repoID)
	m.forge.push(r, "main", "")
	for i := range m.was.pulls {
		if pr := &m.was.pulls[i]; pr.RepoID == repoID && pr.open() {
			m.forge.clash(r, pr.HeadSHA, rapid.IntRange(0, 1).Draw(m.r, "clashes") == 1)
		}
	}
	m.tell(repoID, "main")
}

// pushHead has a person push to a branch: a commit, or what the base has.
func (m *walk) pushHead() {
	pr := m.anyPull()
	r := m.hostRepo(pr.RepoID)
	if rapid.IntRange(0, 3).Draw(m.r, "nothing left") == 3 {
		m.forge.set(r, pr.HeadRef, m.forge.at(r, "main"))
	} else if sha := m.forge.push(r, pr.HeadRef, pr.HeadSHA); rapid.IntRange(0, 5).Draw(m.r, "clashes") == 3 {
		m.forge.clash(r, sha, true)
	}
	m.tell(pr.RepoID, pr.HeadRef)
}

// mergeByHand has a person push a merge of a head to the base.
func (m *walk) mergeByHand() {
	if rapid.IntRange(0, 1).Draw(m.r, "spared") == 0 {
		panic(idle{})
	}
	pr := m.pickPull((*pullRow).open)
	r := m.hostRepo(pr.RepoID)
	if m.forge.landed(r, pr.HeadSHA) != "" || m.forge.at(r, pr.HeadRef) != pr.HeadSHA {
		panic(idle{})
	}
	m.forge.bring(r, pr.HeadSHA)
	m.tell(pr.RepoID, "main")
}

func (m *walk) deleteBranch() {
	if rapid.IntRange(0, 3).Draw(m.r, "spared") < 3 {
		panic(idle{})
	}
	pr := m.anyPull()
	r := m.hostRepo(pr.RepoID)
	if m.forge.at(r, pr.HeadRef) == "" {
		panic(idle{})
	}
	m.forge.set(r, pr.HeadRef, "")
	m.tell(pr.RepoID, pr.HeadRef)
}

// restoreBranch pushes a branch again that is gone.
func (m *walk) restoreBranch() {
	pr := m.pickPull(func(pr *pullRow) bool {
		return m.forge.at(m.hostRepo(pr.RepoID), pr.HeadRef) == "" && pr.State != record.Merged
	})
	r := m.hostRepo(pr.RepoID)
	if rapid.Bool().Draw(m.r, "as it was") {
		m.forge.set(r, pr.HeadRef, pr.HeadSHA)
	} else {
		m.forge.push(r, pr.HeadRef, pr.HeadSHA)
	}
	m.tell(pr.RepoID, pr.HeadRef)
}

// letExpire lets two weeks pass in which nobody answers.
func (m *walk) letExpire() {
	if len(m.was.pullsWith(record.ActionPending)) == 0 {
		panic(idle{})
	}
	m.elapse(14*24*time.Hour + time.Second)
	m.scan(m.on())
}
