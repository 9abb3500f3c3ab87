package flake

import "slices"

// Limits of re-runs.
const (
	MaxReruns     = 2  // of a job and head
	MaxRepoReruns = 10 // of a repository in an hour
)

// Verdict says what a failed job means for the change under test.
type Verdict string

// Verdicts. An agent repairs what is New or Real, and only these cost a round.
const (
	Passed     Verdict = "passed"      // nothing failed
	New        Verdict = "new"         // the change caused it
	Flake      Verdict = "flake"       // it failed, and passed when it was run again
	Real       Verdict = "real"        // it failed again when it was run again
	BaseBroken Verdict = "base_broken" // the base fails in the same way
	Rerun      Verdict = "rerun"       // the job is to be run again
	Infra      Verdict = "infra"       // the machine failed, and no re-run is left, or it passed since
)

// Case is the end of one attempt of a job, with all that decides about it.
type Case struct {
	Failure *Failure // nil: the attempt passed
	Before  *Failure // of the attempt of the same commit before this one; nil: this is the first
	// Evidence is about the fingerprints of Failure, by fingerprint.
	Evidence   map[string]Evidence
	Changed    []string // paths that the pull request changes
	Base       *Failure // of the latest run of the job at the base; nil: it passed, or is not known
	Reruns     int      // of the job and head so far
	RepoReruns int      // of the repository in the last hour
}

// Decision is the verdict about a job.
type Decision struct {
	Verdict Verdict
	Prints  []Print // what the verdict is about
	Known   []Print // other failures that come and go, and are to be left alone
	Wait    bool    // of Rerun: the repository has used up its re-runs of this hour
	Round   bool    // an agent repairs the head, which costs a round
}

// Judge decides about the end of an attempt.
func Judge(c Case) Decision {
	d := c.judge()
	d.Round = d.Verdict == New || d.Verdict == Real
	if c.Failure != nil {
		for _, p := range c.Failure.Prints {
			if c.known(p) && !has(d.Prints, p.FP) {
				d.Known = append(d.Known, p)
			}
		}
	}
	return d
}

func (c Case) judge() Decision {
	switch {
	case c.Failure == nil && (c.Before == nil || many(c.Before)):
		return Decision{Verdict: Passed}
	case c.Failure == nil && c.Before.Class == ClassInfra:
		return Decision{Verdict: Infra, Prints: c.Before.Prints}
	case c.Failure == nil:
		return Decision{Verdict: Flake, Prints: c.Before.Prints}
	case c.Before == nil || c.Failure.Class == ClassInfra:
		return c.first(c.Failure.Prints)
	}
	var real, broken, others []Print
	for _, p := range c.Failure.Prints {
		switch {
		case !c.Before.Has(p.FP):
			others = append(others, p)
		case c.Base != nil && c.Base.Has(p.FP):
			broken = append(broken, p)
		default:
			real = append(real, p)
		}
	}
	switch news := c.caused(others); {
	case len(real) > 0:
		return Decision{Verdict: Real, Prints: real}
	case len(news) > 0:
		return Decision{Verdict: New, Prints: news}
	case len(broken) > 0:
		return Decision{Verdict: BaseBroken, Prints: broken}
	}
	return c.first(others)
}

// first judges failures that were not seen on an earlier attempt of the commit.
func (c Case) first(prints []Print) Decision {
	infra := c.Failure.Class == ClassInfra
	if news := c.caused(prints); len(news) > 0 && !infra {
		return Decision{Verdict: New, Prints: news}
	}
	switch {
	case c.Reruns < MaxReruns:
		return Decision{Verdict: Rerun, Prints: prints, Wait: c.RepoReruns >= MaxRepoReruns}
	case infra:
		return Decision{Verdict: Infra, Prints: prints}
	}
	return Decision{Verdict: Real, Prints: prints}
}

// caused are the failures that the change must have caused: nothing is known of them, and
// they do not depend on chance or are in a file that the change touches. A failure of too
// many tests never comes and goes.
func (c Case) caused(prints []Print) (news []Print) {
	for _, p := range prints {
		if !c.known(p) && (p.Many || c.Failure.Class == ClassBuild || p.touches(c.Changed)) {
			news = append(news, p)
		}
	}
	return news
}

func (c Case) known(p Print) bool { return !p.Many && c.Evidence[p.FP].Known() }

func many(f *Failure) bool {
	return slices.ContainsFunc(f.Prints, func(p Print) bool { return p.Many })
}

func has(prints []Print, fp string) bool {
	return slices.ContainsFunc(prints, func(p Print) bool { return p.FP == fp })
}
