package measure

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/lazy"
)

// mostReverts is how many reverts in a span are looked at, the newest.
const mostReverts = 1000

// Authored are the pull requests of agents that were merged in a span, without those that only
// raise a version for a release, counted.
type Authored struct {
	Merged   int64
	Reverted int64 // of Merged, by a pull request that was merged since, whoever has made it
	Approved int64 // of Merged, by a person who was asked
}

// authoredRow is a merged pull request that a task has opened.
type authoredRow struct {
	ID, Title, HeadRef string
	MergeSHA           *string `db:"merge_sha"`
	MergedAt           time.Time
	Approved           bool // by a person who was asked
}

type revertRow struct {
	Title, Body string
	MergedAt    time.Time
}

type revertArgs struct {
	repoArgs
	Limit int
}

var (
	selectAuthored = db.QWith[repoArgs, authoredRow](`SELECT p.id, p.title, p.head_ref, p.merge_sha, p.merged_at,
		EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = p.id AND a.kind = 'merge' AND a.state = 'applied'
			AND a.decided_by LIKE 'user:%') AS approved
		FROM pulls p WHERE p.account_id = :account_id AND p.repo_id = :repo_id AND p.state = 'merged' AND ` + merged + `
		AND (p.task_id IS NOT NULL OR p.author_kind = 'agent') ORDER BY p.merged_at, p.id`)
	selectReverts = db.QWith[revertArgs, revertRow](`SELECT title, body, merged_at FROM pulls
		WHERE account_id = :account_id AND repo_id = :repo_id AND state = 'merged' AND ` + merged + `
		AND (title LIKE 'Revert "%' OR body LIKE '%This reverts commit %') ORDER BY merged_at DESC, id LIMIT :limit`)
)

// AuthoredOf counts the pull requests of agents in a repository of tx.Account. A revert counts
// whenever it was merged, also after the span.
func AuthoredOf(tx *db.Tx, repoID string, s Span) (out Authored, err error) {
	all, err := selectAuthored.All(tx, repoArgs{of(tx.Account, s), repoID})
	if err != nil {
		return out, err
	}
	reverts, err := selectReverts.All(tx, revertArgs{repoArgs{of(tx.Account, Since(s.From)), repoID}, mostReverts})
	if err != nil {
		return out, err
	}
	kept := notReleases(all)
	out = Authored{Merged: int64(len(kept)), Reverted: reverted(kept, reverts)}
	for _, p := range kept {
		if p.Approved {
			out.Approved++
		}
	}
	return out, nil
}

// release is the title of a pull request that only raises a version for a release, and
// releaseBranch the branch on which the common programs for that propose it.
var (
	release       = lazy.New(`(?i)^(chore(\(release\)|: release)|release:|release v?[0-9]|bump (the )?version|version bump|version packages)`)
	releaseBranch = lazy.New(`^(release-please--|changeset-release/|release/)`)
)

// notReleases leaves out the pull requests that only raise a version.
func notReleases(all []authoredRow) (out []authoredRow) {
	for _, p := range all {
		if !release.MatchString(p.Title) && !releaseBranch.MatchString(p.HeadRef) {
			out = append(out, p)
		}
	}
	return out
}

var (
	revertTitle = lazy.New(`^Revert "(.*)"`)
	revertBody  = lazy.New(`This reverts commit ([0-9a-f]{40})`)
)

// reverted counts which of the merged pull requests were reverted.
func reverted(merged []authoredRow, reverts []revertRow) int64 {
	return int64(len(goneOf(merged, reverts)))
}

// goneOf finds which of the merged pull requests were reverted. A revert that names
// a commit is of that one; otherwise it is of the newest before it of the title. merged
// is in the order of the merges, the oldest first.
func goneOf(merged []authoredRow, reverts []revertRow) map[string]bool {
	gone := map[string]bool{}
	for _, v := range reverts {
		named := revertBody.FindAllStringSubmatch(v.Body, -1)
		for _, sha := range named {
			for _, p := range merged {
				if p.MergeSHA != nil && *p.MergeSHA == sha[1] {
					gone[p.ID] = true
				}
			}
		}
		title := revertTitle.FindStringSubmatch(v.Title)
		if len(named) > 0 || title == nil {
			continue
		}
		last := ""
		for _, p := range merged {
			if p.MergedAt.Before(v.MergedAt) && strings.TrimSpace(p.Title) == strings.TrimSpace(title[1]) {
				last = p.ID
			}
		}
		if last != "" {
			gone[last] = true
		}
	}
	return gone
}
