package intent

import (
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// ungranted tells whether an error says that the owner of a repository has yet to grant
// the App a permission that it asks for.
func ungranted(err error) bool {
	f, is := errors.AsType[*codehost.ForbiddenError](err)
	return is && f.Asked
}

// ask tells that a person has to grant a permission, once for an intent and a permission.
func (s *Service) ask(tx *db.Tx, w row, failure error) error {
	if w.Error == short(failure) {
		return nil
	}
	return s.giveUp(tx, w, failure)
}

// RetryNow makes the lines of repositories due that wait for their next try: their owner has
// granted the App another set of permissions. Those are left alone that wait for a limit of the
// host to end.
func RetryNow(tx *db.Tx, repoIDs []string) error {
	for _, id := range repoIDs {
		objects, err := unlimited.All(tx, id)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := LineMoved.Send(tx, Line{RepoID: id, Object: object, Now: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
