package github

import (
	"fmt"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/lazy"
)

type translation func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error)

// one is a translation to a single event.
func one(e codehost.Event) ([]codehost.Event, error) { return []codehost.Event{e}, nil }

// translations are the events of the kinds of deliveries. Kinds that are not here mean
// nothing: those of created and deleted branches come as push, too, and what people
// may do is asked when it matters.
var translations = map[string]translation{
	"installation":              (*Host).installationEvent,
	"installation_repositories": (*Host).installationEvent,
	"installation_target": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.Installation == nil || p.Account == nil {
			return nil, errPayload
		}
		h.forgetNames()
		return one(codehost.InstallationEvent{Happening: about, Installation: codehost.Installation{
			ID: number(p.Installation.ID), Owner: h.user(p.Account), OwnerKind: p.TargetType,
		}})
	},
	"repository": (*Host).repositoryEvent,
	"push": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if !isSHA(p.Before) || !isSHA(p.After) {
			return nil, errPayload
		}
		if !codehost.ValidRef(p.Ref) {
			return nil, nil // no ref that is worked on has such a name
		}
		about.At = p.Repository.PushedAt.Time
		return one(codehost.PushedEvent{Happening: about, Updates: []codehost.RefUpdate{{Ref: p.Ref, Old: p.Before, New: p.After}}})
	},
	"pull_request": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.PullRequest == nil {
			return nil, errPayload
		}
		about.At = p.PullRequest.UpdatedAt.Time
		return one(codehost.PullChanged{
			Happening: about, Pull: h.pull(*p.PullRequest), Exit: exit(p.Reason), Says: strings.ToUpper(p.Reason),
		})
	},
	"pull_request_review": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.PullRequest == nil || p.Review == nil {
			return nil, errPayload
		}
		about.At = p.Review.SubmittedAt.Time
		return one(codehost.ReviewPosted{Happening: about, Number: p.PullRequest.Number, Review: h.review(*p.Review)})
	},
	"pull_request_review_comment": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.PullRequest == nil || p.Comment == nil {
			return nil, errPayload
		}
		about.At = p.Comment.UpdatedAt.Time
		line := p.Comment.Line
		if line == 0 {
			line = p.Comment.OriginalLine
		}
		return one(codehost.Commented{
			Happening: about, Number: p.PullRequest.Number, Pull: true, Comment: h.comment(*p.Comment),
			Thread: fmt.Sprintf("%s:%d", p.Comment.Path, line), Deleted: p.Action == "deleted",
		})
	},
	"pull_request_review_thread": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.PullRequest == nil || p.Thread == nil {
			return nil, errPayload
		}
		about.At = p.UpdatedAt.Time
		t := codehost.Thread{ID: p.Thread.NodeID, Resolved: p.Action == "resolved"}
		for i, w := range p.Thread.Comments {
			if i == 0 {
				t.Path, t.Side, t.Line, t.Outdated = w.Path, w.Side, w.Line, w.Line == 0
			}
			c := h.comment(w)
			c.ThreadID = t.ID
			t.Comments = append(t.Comments, c)
		}
		return one(codehost.ThreadChanged{Happening: about, Number: p.PullRequest.Number, Thread: t})
	},
	"issues": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.Issue == nil {
			return nil, errPayload
		}
		about.At = p.Issue.UpdatedAt.Time
		e := codehost.IssueChanged{Happening: about, Issue: h.issue(*p.Issue)}
		if p.Label != nil {
			e.Label = p.Label.Name
		}
		return one(e)
	},
	"issue_comment": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.Issue == nil || p.Comment == nil {
			return nil, errPayload
		}
		about.At = p.Comment.UpdatedAt.Time
		return one(codehost.Commented{
			Happening: about, Number: p.Issue.Number, Pull: p.Issue.PullRequest != nil, Comment: h.comment(*p.Comment),
			Deleted: p.Action == "deleted",
		})
	},
	"milestone": func(_ *Host, _ payload, about codehost.Happening) ([]codehost.Event, error) {
		return one(codehost.MilestoneChanged{Happening: about})
	},
	"check_run": (*Host).checkRunEvent,
	"check_suite": func(h *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.CheckSuite == nil {
			return nil, errPayload
		}
		events := checksChanged(about, p.CheckSuite.HeadSHA)
		if p.Action == "rerequested" && p.CheckSuite.App != nil && p.CheckSuite.App.ID == h.cfg.AppID {
			events = append(events, codehost.CheckRequested{Happening: about, SHA: p.CheckSuite.HeadSHA})
		}
		return events, nil
	},
	"status": func(_ *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		about.At = p.UpdatedAt.Time
		return checksChanged(about, p.SHA), nil
	},
	"workflow_run": func(_ *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.WorkflowRun == nil {
			return nil, errPayload
		}
		return checksChanged(about, p.WorkflowRun.HeadSHA), nil
	},
	"workflow_job": func(_ *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.WorkflowJob == nil {
			return nil, errPayload
		}
		return checksChanged(about, p.WorkflowJob.HeadSHA), nil
	},
	"merge_group": func(_ *Host, p payload, about codehost.Happening) ([]codehost.Event, error) {
		if p.MergeGroup == nil {
			return nil, errPayload
		}
		return one(codehost.QueueChanged{
			Happening: about, HeadSHA: p.MergeGroup.HeadSHA, Number: groupNumber(p.MergeGroup.HeadRef),
			BaseRef: strings.TrimPrefix(p.MergeGroup.BaseRef, "refs/heads/"),
		})
	},
	"branch_protection_rule":          rulesChanged,
	"branch_protection_configuration": rulesChanged,
	"repository_ruleset":              rulesChanged,
}

// actions are GitHub's words for the actions that something depends on.
var actions = map[string]codehost.Action{
	"created": codehost.ActionCreated, "edited": codehost.ActionEdited, "deleted": codehost.ActionDeleted,
	"transferred": codehost.ActionTransferred, "labeled": codehost.ActionLabeled, "submitted": codehost.ActionSubmitted,
	"dismissed": codehost.ActionDismissed, "dequeued": codehost.ActionDequeued,
	"checks_requested": codehost.ActionGrouped, "destroyed": codehost.ActionUngrouped,
}

// exit is why a pull request left the merge queue, by GitHub's word for it.
func exit(word string) codehost.Exit {
	switch strings.ToUpper(word) {
	case "":
		return codehost.ExitUnsaid
	case "MERGE", "ALREADY_MERGED":
		return codehost.ExitMerged
	case "MERGE_CONFLICT":
		return codehost.ExitConflict
	case "CI_FAILURE":
		return codehost.ExitFailed
	case "CI_TIMEOUT":
		return codehost.ExitSlow
	}
	return codehost.ExitOther
}

func rulesChanged(_ *Host, _ payload, about codehost.Happening) ([]codehost.Event, error) {
	return one(codehost.RulesChanged{Happening: about})
}

func checksChanged(about codehost.Happening, sha string) []codehost.Event {
	return []codehost.Event{codehost.ChecksChanged{Happening: about, SHA: sha}}
}

var groupRef = lazy.New(`/pr-(\d{1,12})-[0-9a-f]{40}$`)

// groupNumber is the number of the last pull request of a group, which is in the name of
// its branch; 0 if it is not.
func groupNumber(ref string) int64 {
	m := groupRef.FindStringSubmatch(ref)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}

func isSHA(s string) bool { return codehost.ValidSHA(s) || s == codehost.ZeroSHA }

// installationEvent is of the kinds installation and installation_repositories.
func (h *Host) installationEvent(p payload, about codehost.Happening) ([]codehost.Event, error) {
	if p.Installation == nil {
		return nil, errPayload
	}
	h.installations.Clear()
	e := codehost.InstallationEvent{Happening: about, Installation: h.installation(*p.Installation)}
	e.Installation.Gone = p.Action == "deleted"
	if p.Selection != "" {
		e.Installation.Chosen = p.Selection == "selected"
	}
	added := p.Added
	if p.Action == "created" || p.Action == "unsuspend" {
		added = p.Repositories
	}
	for _, w := range added {
		e.Added = append(e.Added, h.repoInfo(w))
	}
	for _, w := range p.Removed {
		e.Removed = append(e.Removed, h.repo(w))
	}
	return one(e)
}

func (h *Host) repositoryEvent(p payload, about codehost.Happening) ([]codehost.Event, error) {
	e := codehost.RepoEvent{Happening: about, Info: h.repoInfo(*p.Repository), Gone: p.Action == "deleted"}
	from := p.Changes.Owner.From
	switch {
	case p.Action == "renamed" && p.Changes.Repository.Name.From != "":
		e.Was = about.Repo.Owner + "/" + p.Changes.Repository.Name.From
	case p.Action == "transferred" && from.User != nil:
		e.Was = from.User.Login + "/" + about.Repo.Name
	case p.Action == "transferred" && from.Organization != nil:
		e.Was = from.Organization.Login + "/" + about.Repo.Name
	}
	h.names.Delete(about.Repo.Key())
	h.installations.Delete(about.Repo.Key())
	return one(e)
}

func (h *Host) checkRunEvent(p payload, about codehost.Happening) ([]codehost.Event, error) {
	if p.CheckRun == nil {
		return nil, errPayload
	}
	c := h.check(*p.CheckRun)
	events := []codehost.Event{codehost.ChecksChanged{Happening: about, SHA: p.CheckRun.HeadSHA, Check: &c}}
	if p.Action == "rerequested" && c.Own {
		events = append(events, codehost.CheckRequested{Happening: about, SHA: p.CheckRun.HeadSHA, Name: c.Name})
	}
	return events, nil
}

func (h *Host) forgetNames() { h.names.Clear() }
