package pull

import (
	"strings"

	"yardmaster/internal/db"
)

func (y *yard) wantActions(prID, want string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		states, err := actions.All(tx, prID)
		if got := strings.Join(states, " "); got != want {
			y.t.Errorf("the actions are %q, want %q", got, want)
		}
		return err
	})
}

func (y *yard) wantTold(who, want string) {
	y.t.Helper()
	if y.told[who] != want {
		y.t.Errorf("%s was told %q, want %q", who, y.told[who], want)
	}
}
