package box

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

// Standing is a box for those who decide what it runs.
type Standing struct {
	ID       string
	Name     string
	State    string
	Presence string
	LastBeat *time.Time
	Version  string // of the program on it
	Target   string // as linux/amd64
	Labels   map[string]string
	Update   *protocol.UpdateReport // nil: its program cannot update itself
}

// Standings answers the boxes of tx.Account that are not revoked, the oldest first.
func (s *Service) Standings(tx *db.Tx) ([]Standing, error) {
	rows, err := allOf.All(tx, tx.Account)
	out := make([]Standing, len(rows))
	for i, r := range rows {
		out[i] = Standing{
			ID: r.ID, Name: r.Name, State: r.State, Presence: presenceAt(r.Presence, r.LastBeatAt, tx.Now), LastBeat: r.LastBeatAt,
			Version: r.Version, Target: r.OS + "/" + r.Arch, Labels: r.Labels.V, Update: r.Telemetry.V.Update,
		}
	}
	return out, err
}

// updateOf is a report of a box as it can be stored.
func updateOf(u *protocol.UpdateReport) *protocol.UpdateReport {
	if u == nil {
		return nil
	}
	out := *u
	for _, text := range []*string{&out.State, &out.Command, &out.Release, &out.Version, &out.Why} {
		*text = strings.ReplaceAll(strings.ToValidUTF8((*text)[:min(len(*text), protocol.MaxUpdateText)], ""), "\x00", "")
	}
	switch out.State {
	case protocol.UpdateFetching, protocol.UpdateReady, protocol.UpdateNight, protocol.UpdateTrying, protocol.UpdateGood,
		protocol.UpdateFailed:
	default:
		out.State = protocol.UpdateNone
	}
	out.Keys = max(0, min(out.Keys, 1000))
	return &out
}

// sameUpdate tells whether two reports say the same.
func sameUpdate(a, b *protocol.UpdateReport) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Known makes the account of a box that calls over the bus tx.Account. It fails for a revoked or
// unknown box.
func Known(tx *db.Tx, boxID string) error {
	r, ok, err := byIdentity.Maybe(tx, boxID)
	switch {
	case err != nil:
		return err
	case !ok, r.State == Revoked:
		return revoked()
	}
	tx.Account = r.AccountID
	return nil
}
