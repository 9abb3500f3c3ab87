package pull

import (
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/protocol"
)

// mostLeftOut limits how much is kept of what the runs on a pull request have left out.
const mostLeftOut = 100

// NoteLeftOut notes what the agent of a run has made and the pull request does not have. It
// is added to what earlier runs have left out.
func (s *Service) NoteLeftOut(tx *db.Tx, prID string, left []protocol.LeftOut) error {
	if len(left) == 0 {
		return nil
	}
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok {
		return err
	}
	all := slices.Clone(left)
	for _, old := range pr.SaysLeftOut() {
		if !slices.ContainsFunc(left, func(l protocol.LeftOut) bool { return l.Kind == old.Kind && l.Name == old.Name }) {
			all = append(all, old)
		}
	}
	pr.LeftOut = &db.JSON[[]protocol.LeftOut]{V: all[:min(len(all), mostLeftOut)]}
	return record.Save(tx, pr)
}

// WithLeftOut is the text of a pull request that names what it does not have.
func WithLeftOut(body string, left []protocol.LeftOut) string {
	if len(left) == 0 {
		return body
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(body) + "\n\nMade by the agent, and not in this pull request:\n")
	for _, l := range left {
		b.WriteString("\n* ")
		if l.Kind == protocol.LeftBranch {
			b.WriteString("branch ")
		}
		b.WriteString("`" + strings.ReplaceAll(codehost.Legible(l.Name), "`", "'") + "`: " + strings.Join(strings.Fields(l.Why), " "))
	}
	return strings.TrimSpace(b.String())
}
