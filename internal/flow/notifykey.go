package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/event"
	"yardmaster/internal/llm"
)

// keyRefused: owners and admins hear that a provider refuses a key of the account; of a
// person's own key, that person.
func (n Notify) keyRefused(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	label, why, user, err := modelkey.Refusal(e)
	if err != nil {
		return out, false, err
	}
	title, text := "The model key "+label+" is refused", "Its provider does not take it. Replace it, or verify it once it is mended."
	if why == llm.SlugQuota {
		title, text = "The model key "+label+" is used up", "Nothing is left of its quota at the provider."
	}
	text += " It rests for half an hour, or until its provider resets it, and is tried again then."
	if user == "" {
		return stopped(tx, e, nounKey, "/ui/settings/keys", title, text)
	}
	return notification.Notice{
		Kind: notification.Connection, Noun: nounKey, Subject: e.Object, Personal: true, Path: "/ui/settings/you", To: []string{user},
		Title: title, Text: text,
	}, true, nil
}
