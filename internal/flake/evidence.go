package flake

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits of the evidence about a failure.
const (
	Window   = 14 * 24 * time.Hour
	BaseRuns = 200 // runs of a job at the base that count, the newest
)

// Side is where a job ran.
type Side string

// Sides of a job.
const (
	OnBase  Side = "base"
	OnPull  Side = "pull"
	OnGroup Side = "group" // of a merge queue; counts as the base
)

// Run is one finished run of a job in the past.
type Run struct {
	SHA     string
	Attempt int // from 1
	Side    Side
	Pull    string // id of the pull request; "" on other sides
	At      time.Time
	Prints  []string // fingerprints; none: the run passed
}

// History is what is known of a job.
type History struct {
	Now  time.Time
	Pull string // the pull request that is judged
	Runs []Run  // of the job, in any order
	// Contains tells whether a commit contains another one.
	Contains func(sha, other string) bool
	// Blob is the blob of a file at a commit; "" if it is not known.
	Blob func(sha, file string) string
}

// Evidence is what the history of a job says of one fingerprint.
type Evidence struct {
	Rerun     bool // it went away when the same commit was run again
	Base      bool // it went away at the base without a change of the test
	Elsewhere bool // it was seen on two other, independent pull requests; buys a re-run only
	N         int  // runs with it that count as evidence
	D         int  // finished first attempts of the job
}

// Known tells whether a fingerprint is known to come and go.
func (e Evidence) Known() bool { return e.Rerun || e.Base }

// String is the share of runs with the fingerprint, such as "3 of 212". From one in five
// on, the text says that it is often.
func (e Evidence) String() string {
	s := fmt.Sprintf("%d of %d", e.N, e.D)
	if e.D > 0 && e.N*5 >= e.D {
		s += ", which is often"
	}
	return s
}

// Of collects the evidence about a fingerprint.
func (h History) Of(p Print) (e Evidence) {
	runs := h.recent()
	last := map[string]int{} // commit -> last attempt that passed
	for _, r := range runs {
		if r.Attempt == 1 {
			e.D++
		}
		if len(r.Prints) == 0 {
			last[r.SHA] = max(last[r.SHA], r.Attempt)
		}
	}
	pulls := map[string]string{} // other pull requests with the fingerprint -> commit
	for i, r := range runs {
		if !slices.Contains(r.Prints, p.FP) {
			continue
		}
		rerun := last[r.SHA] > r.Attempt
		base := r.Side != OnPull && h.wentAway(r, runs[i+1:], p)
		e.Rerun, e.Base = e.Rerun || rerun, e.Base || base
		if rerun || base {
			e.N++
		}
		if r.Side == OnPull && r.Pull != h.Pull {
			pulls[r.Pull] = r.SHA
		}
	}
	e.Elsewhere = h.independent(pulls)
	if p.Many {
		e.Rerun, e.Base, e.N = false, false, 0
	}
	return e
}

// recent are the runs that count, oldest first.
func (h History) recent() []Run {
	runs := slices.DeleteFunc(slices.Clone(h.Runs), func(r Run) bool { return h.Now.Sub(r.At) > Window })
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Attempt, b.Attempt)) })
	base := 0
	for _, r := range runs {
		if r.Side != OnPull {
			base++
		}
	}
	return slices.DeleteFunc(runs, func(r Run) bool {
		if r.Side == OnPull {
			return false
		}
		base--
		return base >= BaseRuns
	})
}

// wentAway tells whether a later run at the base passed with the same text of the test.
func (h History) wentAway(failed Run, later []Run, p Print) bool {
	if h.Blob == nil {
		return false
	}
	for _, r := range later {
		if r.Side == OnPull || len(r.Prints) > 0 || r.At.Equal(failed.At) {
			continue
		}
		same := 0
		for _, f := range p.Files {
			before, after := h.Blob(failed.SHA, f), h.Blob(r.SHA, f)
			if before != after {
				same = -1
				break
			}
			if before != "" {
				same++
			}
		}
		if same > 0 {
			return true
		}
	}
	return false
}

// maxPulls limits the pull requests that are compared with each other.
const maxPulls = 50

func (h History) independent(pulls map[string]string) bool {
	var heads []string
	for _, sha := range pulls {
		if heads = append(heads, sha); len(heads) == maxPulls {
			break
		}
	}
	for i, a := range heads {
		for _, b := range heads[i+1:] {
			if a != b && (h.Contains == nil || !h.Contains(a, b) && !h.Contains(b, a)) {
				return true
			}
		}
	}
	return false
}

// touches tells whether one of the changed paths is a file of the fingerprint. A log names
// files relative to a folder that it does not name, so the end of a path decides.
func (p Print) touches(changed []string) bool {
	for _, file := range p.Files {
		file = strings.TrimPrefix(path.Clean(file), "./")
		for _, c := range changed {
			if base, any := strings.CutSuffix(file, anySource); any {
				name := path.Base(c)
				if strings.TrimSuffix(name, path.Ext(name)) == base {
					return true
				}
				continue
			}
			if c == file || strings.HasSuffix(c, "/"+file) || strings.HasSuffix(file, "/"+c) {
				return true
			}
		}
	}
	return false
}
