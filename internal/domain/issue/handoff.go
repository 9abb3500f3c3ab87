package issue

import (
	"fmt"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/secretscan"
)

// HandoffState is how far a hand-off is.
type HandoffState string

// States of a hand-off. One that failed is delivered after all if somebody has its event
// sent again.
const (
	Queued    = "queued"    // it is recorded
	Sent      = "sent"      // the webhook is being told
	Delivered = "delivered" // the webhook has answered 2xx
	Failed    = "failed"    // the webhook was not told, or did not answer 2xx
)

// Values lists all states.
func (HandoffState) Values() []string { return []string{Queued, Sent, Delivered, Failed} }

// policyReason is why an issue is handed off that nobody has asked to hand off.
const policyReason = "The policy file hands issues to this webhook."

// notHandedOff is the category of the question about an issue that the policy file hands to
// a webhook that does not take it.
const notHandedOff = "not_handed_off"

// The slugs of a webhook that takes no hand-off.
const (
	slugNotTaken  = "handoff-not-taken"
	slugUnhealthy = "webhook-unhealthy"
)

// noWebhook says in a sentence, and of the field, that the name of a webhook is missing, or is
// nobody's.
func noWebhook(sentence, says string) error {
	f := fault.New(fault.Unprocessable, "", "The issue cannot be handed off: "+sentence)
	f.Fields = map[string][]string{"webhook_ref": {says}}
	return f
}

// takes refuses a webhook of tx.Account to which no hand-off would be sent.
func (s *Service) takes(tx *db.Tx, ref string) error {
	if ref == "" {
		return noWebhook("no webhook is named, neither here nor by the policy file.", "is needed, because the policy file names no webhook")
	}
	there, obstacle, err := s.Webhooks.TakesHandoff(tx, ref)
	switch {
	case err != nil:
		return err
	case !there:
		return noWebhook("the account has no webhook "+ref+".", "is the name of no webhook of the account")
	case obstacle == OtherEvents:
		return fault.Reason(slugNotTaken, "The webhook "+ref+" is not sent issue.handoff. Name another one, or make one "+
			"(webhook.create) with issue.handoff among its events.").With("webhook_ref", ref)
	case obstacle == NotHealthy:
		return fault.Reason(slugUnhealthy, "The webhook "+ref+" is unhealthy: nothing is sent there. Name another one, or "+
			"revive it (webhook.revive) once its address answers.").With("webhook_ref", ref)
	}
	return nil
}

// hand hands a locked issue to a webhook that takes it. Triage of the issue is over: its ask,
// and what people were asked about it, end.
func (s *Service) hand(tx *db.Tx, r repo.Ref, i *row, h handoffRow) (handoffRow, error) {
	h.ID, h.AccountID, h.RepoID, h.IssueID, h.State, h.CreatedAt = id.New(), tx.Account, r.ID, i.ID, Queued, tx.Now
	if _, err := handOff.Exec(tx, h); err != nil {
		return h, err
	}
	why := "The issue was handed to the webhook " + h.WebhookRef + "."
	was := i.Triage
	if err := s.decide(tx, i, HandedOff, Decision{Reason: why}); err != nil {
		return h, err
	}
	if err := s.say(tx, r, i, was, handedText); err != nil {
		return h, err
	}
	if err := s.save(tx, *i); err != nil {
		return h, err
	}
	if err := s.endAsk(tx, *i, Decision{Reason: why}); err != nil {
		return h, err
	}
	return h, HandoffEvent.Record(tx, event.Subject{ID: i.ID, RepoID: r.ID}, handoffData{
		HandoffID: h.ID, Repo: r.FullName(), IssueID: i.ID, Number: i.number(), URL: i.URL, Title: i.Title,
		Reason: secretscan.Scrub(h.Reason), WebhookRef: h.WebhookRef,
	})
}

// handByPolicy hands a locked issue to the webhook that the policy file names. If that does
// not take it, a person is asked.
func (s *Service) handByPolicy(tx *db.Tx, r repo.Ref, i row) error {
	ref := r.Policy.Issues.WebhookRef
	err := s.takes(tx, ref)
	if err == nil {
		_, err = s.hand(tx, r, &i, handoffRow{WebhookRef: ref, Reason: policyReason, RequestedBy: "system"})
		return err
	}
	f := fault.From(err)
	if f.Kind != fault.Unprocessable && f.Kind != fault.Conflict {
		return err
	}
	why := f.Detail
	if f.Kind == fault.Unprocessable {
		why = fmt.Sprintf("The policy file hands issues to the webhook %q, which %s.", ref,
			strings.Join(f.Fields["webhook_ref"], ", "))
	}
	_, err = s.question(tx, r, &i, notHandedOff, why)
	return err
}

// question puts a locked issue to people. Triage of the issue is over: its ask is theirs.
func (s *Service) question(tx *db.Tx, r repo.Ref, i *row, category, reason string) (escalationID string, err error) {
	raised, err := s.Escalations.Raise(tx, Question{
		RepoID: r.ID, IssueID: i.ID, Category: category, Title: i.Title, Body: i.Body, Reason: reason, AskID: i.AskID,
		URL: db.NullText(i.URL),
	})
	if err != nil {
		return "", err
	}
	d, was := Decision{Category: category, Reason: reason, EscalationID: raised}, i.Triage
	if err := s.decide(tx, i, Escalated, d); err != nil {
		return "", err
	}
	if err := s.say(tx, r, i, was, askedText); err != nil {
		return "", err
	}
	i.EscalationID = &raised
	if err := s.save(tx, *i); err != nil {
		return "", err
	}
	if err := s.endAsk(tx, *i, d); err != nil {
		return "", err
	}
	return raised, EscalatedEvent.Record(tx, event.Subject{ID: i.ID, RepoID: r.ID}, escalatedData{
		Repo: r.FullName(), IssueID: i.ID, AskID: i.AskID, EscalationID: raised, Category: category,
		Reason: secretscan.Scrub(reason), URL: db.NullText(i.URL),
	})
}

// decide notes the decision about an issue, which ends the question that people were asked
// before. What is to be read again at the host still is, and a label of before the decision
// does not count any more.
func (s *Service) decide(tx *db.Tx, i *row, triage string, d Decision) error {
	if err := s.endQuestion(tx, i, d.Reason); err != nil {
		return err
	}
	i.Triage, i.Filing = triage, false
	i.LabelledAt = max(i.LabelledAt, tx.Micros())
	return nil
}

// endQuestion ends what people are asked about an issue.
func (s *Service) endQuestion(tx *db.Tx, i *row, why string) error {
	if i.EscalationID == nil {
		return nil
	}
	return s.Escalations.End(tx, *i.EscalationID, why)
}

// endAsk ends the ask of an issue, so that triage does not decide any more.
func (s *Service) endAsk(tx *db.Tx, i row, d Decision) error {
	if i.AskID == nil {
		return nil
	}
	return s.Asks.Decide(tx, *i.AskID, d)
}

// beginAnew takes a locked issue that was dropped, escalated or handed off back to where
// triage has not looked at it.
func (s *Service) beginAnew(tx *db.Tx, i *row) error {
	if err := s.endQuestion(tx, i, "The issue went back to triage."); err != nil {
		return err
	}
	i.Triage, i.AskID, i.EscalationID, i.Filing, i.Told, i.Finished = None, nil, nil, false, false, false
	i.Round++
	return nil
}

// decided tells whether triage of an issue is over without work.
func (r row) decided() bool {
	return r.Triage == Dropped || r.Triage == Escalated || r.Triage == HandedOff
}

// Ref is an issue that somebody files an ask about.
type Ref struct {
	RepoID, Repo, URL string // Repo: owner/name
	Enabled           bool   // its repository is
	AskID             string // the ask that it follows; empty: it can get one
}

// ForAsk reads and locks an issue of tx.Account. It fails with fault.NotFound, and with
// fault.Conflict (issue-closed) for one that is not open.
func (s *Service) ForAsk(tx *db.Tx, issueID string) (Ref, error) {
	i, r, err := read(tx, issueID, true)
	if err != nil {
		return Ref{}, err
	}
	out := Ref{RepoID: r.ID, Repo: r.FullName(), URL: i.URL, Enabled: r.Enabled}
	if (i.Triage == Filed || i.Triage == Triaged) && i.AskID != nil {
		out.AskID = *i.AskID
		return out, nil
	}
	if i.State != Open {
		return Ref{}, fault.Reason("issue-closed", "The issue is not open at its code host.")
	}
	return out, nil
}

// Follow has an issue of ForAsk follow a new ask, whatever became of it before.
func (s *Service) Follow(tx *db.Tx, issueID, askID string) error {
	i, r, err := read(tx, issueID, true)
	if err != nil {
		return err
	}
	if err := s.beginAnew(tx, &i); err != nil {
		return err
	}
	i.Triage, i.AskID = Filed, &askID
	i.LabelledAt = max(i.LabelledAt, tx.Micros())
	if err := s.save(tx, i); err != nil {
		return err
	}
	return FiledEvent.Record(tx, event.Subject{ID: i.ID, RepoID: r.ID}, filedData{AskID: askID, Number: i.number(), Trusted: true})
}

// HandoffMoved notes what became of a hand-off of tx.Account, and why it failed.
func (s *Service) HandoffMoved(tx *db.Tx, handoffID, state, failure string) error {
	h, ok, err := lockHandoff.Maybe(tx, tx.Account, handoffID)
	if err != nil || !ok || h.State == state {
		return err
	}
	if _, err := moveHandoff.Exec(tx, handoffMoveArgs{
		AccountID: tx.Account, ID: h.ID, State: state, Failure: db.NullText(failure), MovedAt: tx.Now,
	}); err != nil {
		return err
	}
	about := event.Subject{ID: h.IssueID, RepoID: h.RepoID}
	switch state {
	case Delivered:
		return DeliveredEvent.Record(tx, about, deliveredData{HandoffID: h.ID, WebhookRef: h.WebhookRef})
	case Failed:
		return FailedEvent.Record(tx, about, failedData{
			HandoffID: h.ID, WebhookRef: h.WebhookRef, RequestedBy: h.RequestedBy, Reason: failure,
		})
	}
	return nil
}
