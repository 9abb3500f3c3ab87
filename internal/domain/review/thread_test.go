package review

import (
	"context"
	"errors"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// talk is a host with threads, where ann may write.
type talk struct {
	codehost.NoForge
	threads []codehost.Thread
	away    error
}

// Threads implements codehost.Forge.
func (h *talk) Threads(context.Context, codehost.Repo, int64) ([]codehost.Thread, error) {
	return h.threads, nil
}

// Permission implements codehost.Forge.
func (h *talk) Permission(_ context.Context, _ codehost.Repo, login string) (codehost.Permission, error) {
	if login == "ann" {
		return codehost.PermitWrite, h.away
	}
	return codehost.PermitRead, h.away
}

// A finding is answered by people who may write alone: who opened a pull request may close
// its threads, and anybody may reply in a public repository. What such a person has said
// does not count because another one speaks elsewhere later.
func TestWhoAnswersFindings(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		said := func(logins ...string) (all []codehost.Comment) {
			for _, login := range logins {
				all = append(all, codehost.Comment{ID: "7", Author: codehost.User{Login: login, Own: login == "yard", Bot: login == "bot"}})
			}
			return all
		}
		var ann, eve codehost.User
		ann.Login, eve.Login = "ann", "eve"
		host := &talk{}
		y.Hosts.Set(codehost.BuiltIn, codehost.Sides{Host: must(y.Hosts.Of(y.ref().HostRepo())), Forge: host})
		y.commit("a.txt", numbered(20))
		y.head()
		y.pass(0)
		y.found(defect("a.txt", 5, "high", "It is wrong."))
		y.pass(0)
		y.verified(1, 1)
		f := y.all()[0]
		y.write(func(tx *db.Tx) error { _, err := insertPlace.Exec(tx, f.ID, y.pr.ID, "7"); return err })
		read := func() error { return y.ReadThreads(y.ctx(), y.ref(), y.pr.ID, 7) }
		for name, thread := range map[string]codehost.Thread{
			"nobody":                 {Comments: said("yard")},
			"a stranger":             {Comments: said("yard", "eve")},
			"a stranger who closes":  {Comments: said("yard"), Resolved: true, ResolvedBy: eve},
			"nobody known closes":    {Comments: said("yard"), Resolved: true},
			"a program":              {Comments: said("yard", "bot")},
			"another one of ours":    {Comments: said("yard", "ann", "yard")},
			"a stranger after ours":  {Comments: said("yard", "ann", "yard", "eve")},
			"a program of that name": {Comments: []codehost.Comment{said("yard")[0], {Author: codehost.User{Login: "ann", Bot: true}}}},
		} {
			host.threads = []codehost.Thread{thread}
			if err := read(); err != nil || y.all()[0].State != Posted {
				t.Errorf("%s: it is %s, %v", name, y.all()[0].State, err)
			}
		}
		host.threads = []codehost.Thread{{Comments: said("yard", "ann")}}
		host.away = &codehost.BusyError{Cause: errors.New("away")}
		if err := read(); err == nil || y.all()[0].State != Posted {
			t.Errorf("it is %s although the host does not say who may write: %v", y.all()[0].State, err)
		}
		host.away = nil
		for name, thread := range map[string]codehost.Thread{
			"somebody who may write":   {Comments: said("yard", "ann")},
			"and a stranger later":     {Comments: said("yard", "ann", "eve")},
			"one who may write closes": {Comments: said("yard", "eve"), Resolved: true, ResolvedBy: ann},
		} {
			host.threads = []codehost.Thread{thread}
			if err := read(); err != nil || y.all()[0].State != Answered {
				t.Errorf("%s: it is %s, %v", name, y.all()[0].State, err)
			}
			y.write(func(tx *db.Tx) error { return y.Service.Answer(tx, f.ID, true) })
		}
	})
}

func must(h codehost.Host, err error) codehost.Host {
	if err != nil {
		panic(err)
	}
	return h
}
