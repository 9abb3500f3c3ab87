package intent

import (
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// ungranted tells whether an error says that the owner of a repository has yet to grant
// the App a permission that it asks for.
func ungranted(err error) bool {
	f, is := errors.AsType[*codehost.ForbiddenError](err)
	return is && f.Asked
}

// ask tells that a person has to grant a permission, once for an intent and a permission.
func (s *Service) ask(tx *db.Tx, w row, failure error) error {
	was, ok, err := lastError.Maybe(tx, w.ID)
	if err != nil || ok && was == short(failure) {
		return err
	}
	return s.giveUp(tx, w, failure)
}

// RetryNow makes the intents of repositories due that wait for their next try: their owner
// has granted the App another set of permissions.
func RetryNow(tx *db.Tx, hub *event.Hub, repoIDs []string) error {
	for _, id := range repoIDs {
		if _, err := retryNow.Exec(tx, id, tx.Micros()); err != nil {
			return err
		}
	}
	hub.Notify(tx, event.IntentTopic)
	return nil
}
