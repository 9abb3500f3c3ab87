package flow

import (
	"context"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/talk"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Talked tells conversations of pull requests. It is talk.Pulls.
type Talked struct {
	Pulls  *pull.Service
	People Signers
}

// Get reads a pull request of tx.Account; false if there is none.
func (Talked) Get(tx *db.Tx, prID string) (talk.Pull, bool, error) {
	p, ok, err := pull.ForTalk(tx, prID)
	return talk.Pull(p), ok, err
}

// At locks an open pull request of tx.Account.
func (Talked) At(tx *db.Tx, prID, headSHA string) (talk.Pull, error) {
	p, err := pull.AtTalk(tx, prID, headSHA)
	return talk.Pull(p), err
}

// Request has a pull request held, and its words answered.
func (t Talked) Request(tx *db.Tx, w talk.Words) error {
	return t.Pulls.RequestChanges(tx, pull.Requested(w))
}

// TakeBack ends requests.
func (t Talked) TakeBack(tx *db.Tx, prID, requestID string) ([]string, error) {
	return t.Pulls.TakeBack(tx, prID, requestID)
}

// Hunks reads the lines of a file that a pull request shows.
func (t Talked) Hunks(ctx context.Context, prID, headSHA, path string) ([]codehost.Hunk, bool, error) {
	return t.Pulls.Hunks(ctx, prID, headSHA, path)
}

// Name is what people call whoever a label names.
func (t Talked) Name(tx *db.Tx, label string) (string, error) { return t.People.Name(tx, label) }

// ResolveAnswered resolves the threads of requests that a head answers.
func ResolveAnswered(t *talk.Service) func(*db.Tx, pull.Answered) error {
	return func(tx *db.Tx, a pull.Answered) error { return t.Answered(tx, talk.Answer(a)) }
}

// requested: whoever asked for the work hears that somebody requests changes of it, and who
// else talks about it.
func (n Notify) requested(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := record.RequestedEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	text, err := talk.TextOf(tx, data.RequestID)
	if err != nil {
		return out, false, err
	}
	return n.talked(tx, e, "Changes are requested in #%d: %s", text)
}

// commented: the same people hear what is said.
func (n Notify) commented(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := talk.CommentedEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	text, err := talk.Text(tx, data.CommentID)
	if err != nil {
		return out, false, err
	}
	return n.talked(tx, e, "A comment on #%d: %s", text)
}

// talked is a notice about the conversation of a pull request, which the event is about.
func (n Notify) talked(tx *db.Tx, e event.Recorded, title, text string) (out notification.Notice, ok bool, err error) {
	briefs, err := record.Briefs(tx, []string{e.Object})
	b, ok := briefs[e.Object]
	if err != nil || !ok {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Approval, Noun: nounTalk, Subject: e.Object, Personal: true, Path: "/ui/prs/" + e.Object + "?tab=conversation",
		Title: fmt.Sprintf(title, b.Number, b.Title), Text: text,
	}
	if out.Repo, err = nameOf(tx, e.RepoID); err != nil {
		return out, false, err
	}
	labels, err := talk.Speakers(tx, e.Object)
	if err != nil {
		return out, false, err
	}
	t, _, err := workOf(tx, e.Object)
	if err != nil {
		return out, false, err
	}
	if t.RequestedBy != nil {
		labels = append(labels, "user:"+*t.RequestedBy)
	}
	for _, l := range labels {
		userID, is := strings.CutPrefix(l, "user:")
		if !is {
			continue
		}
		may, err := allowed(tx, userID, policy.ReadPRs)
		if err != nil {
			return out, false, err
		}
		if may {
			out.To = append(out.To, userID)
		}
	}
	return out, len(out.To) > 0, nil
}
