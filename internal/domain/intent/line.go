package intent

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
)

// Line is that of the intents of one object of a repository.
type Line struct {
	RepoID, Object, Account string
	Rank                    int
	Now                     bool // also if it waits after a failed try
}

// LineMoved is sent when a line has an intent more, or need not wait any longer.
var LineMoved = event.DeclareSignal[Line]("intent.line_moved", "Something is to be done at a code host now.")

// FollowLine has a line carried out.
func (s *Service) FollowLine(tx *db.Tx, l Line) error {
	if l.Now {
		s.queue.Hurry(tx, l.key())
		return nil
	}
	s.queue.Add(tx, l.key(), due.Entry{Account: l.Account, Rank: l.Rank})
	return nil
}

// key is that of a line in the queue. No id of a repository has a slash.
func (l Line) key() string { return l.RepoID + "/" + l.Object }

func load(tx *db.Tx, key string) (row, bool, error) {
	repoID, object, _ := strings.Cut(key, "/")
	return head.Maybe(tx, repoID, object)
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return openLines.All(tx, most) }

// Waits tells whether anything is to be done yet on an object of a repository.
func Waits(tx *db.Tx, repoID, object string) (bool, error) {
	_, waits, err := head.Maybe(tx, repoID, object)
	return waits, err
}

// Wait is that of a line for a limit of the host to end.
type Wait struct {
	Since time.Time // when the intent was put
	Until time.Time
}

// Drop ends the intents on an object that have not begun. What a node is carrying out goes on. The
// line is looked at at once, and is over then.
func Drop(tx *db.Tx, repoID, object string) error {
	n, err := drop.Exec(tx, repoID, object, tx.Micros())
	if err != nil || n == 0 {
		return err
	}
	return LineMoved.Send(tx, Line{RepoID: repoID, Object: object, Now: true})
}
