package run

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/standin"
	"yardmaster/internal/protocol"
	"yardmaster/internal/reach"
)

// related answers what tasks ask of their runs.
type related struct{ standin.Tasks }

func (related) Endings(tx *db.Tx, taskID string) ([]task.Ending, error) { return Endings(tx, taskID) }
func (related) Activities(tx *db.Tx, taskIDs []string) (map[string]string, error) {
	return Activities(tx, taskIDs)
}

func (related) Pulse(tx *db.Tx, taskID string) (*task.Pulse, error) { return Pulse(tx, taskID) }

// others stands in for the domains that runs ask. A test sets vault and settle
// to answer itself.
type others struct {
	f       *fixture
	dropped []string             // boxes and accounts whose messages were deleted
	fanout  bool                 // every task is a scout of a fan-out
	text    reach.Text           // that every run is given; empty: of the account
	ofLent  bool                 // a lent box has had a part in what every task is about
	deaf    bool                 // marking a box as unfit fails
	prefers map[string]Preferred // by person
	vault   func(tx *db.Tx, repoID string) ([]protocol.Secret, error)
	settle  func(tx *db.Tx, t *task.Row, r *Row, f Ending) (bool, error)
}

func (*others) Handle(string, func(context.Context, string, []byte) (any, error)) error {
	return errors.New("there is no bus")
}

func (*others) Template(_ *db.Tx, _, _, name, _ string) (Template, bool, error) {
	return Template{Agent: "claude", Model: "m", Timeout: time.Hour, Isolation: "landlock"}, true, nil
}

func (o *others) Prefer(_ *db.Tx, _, _, person string, tpl *Template) (Preferred, error) {
	p := o.prefers[person]
	if p.Provider != "" {
		tpl.Model = p.Model
	}
	return p, nil
}

func (*others) Policy(*db.Tx, string) (string, error)                      { return `{}`, nil }
func (*others) Notes(*db.Tx, *task.Row, string) ([]string, error)          { return nil, nil }
func (*others) Servers(*db.Tx, *task.Row) ([]protocol.MCPServer, error)    { return nil, nil }
func (o *others) Declares(*db.Tx, *task.Row) (bool, error)                 { return reach.Declares(o.text), nil }
func (o *others) OfLent(*db.Tx, *task.Row) (bool, error)                   { return o.ofLent, nil }
func (*others) HeadRef(*db.Tx, *task.Row) (string, error)                  { return "", nil }
func (*others) Submodules(*db.Tx, *task.Row) (*protocol.Submodules, error) { return nil, nil }
func (*others) Environment(*db.Tx, *task.Row, bool) (*protocol.Environment, error) {
	return nil, nil
}
func (o *others) OfFanout(*db.Tx, string) (bool, error)            { return o.fanout, nil }
func (*others) FaultShown(_ *db.Tx, _, why string) (string, error) { return why, nil }
func (*others) At(context.Context, string, string) (string, error) { return "", nil }
func (*others) Changed(context.Context, string, string, string) (codehost.Diff, error) {
	return codehost.Diff{}, codehost.ErrNotFound
}
func (*others) OfTask(_ *db.Tx, taskID string) ([]Artifact, error) {
	return []Artifact{{ID: "art-" + taskID, Name: "shot.png"}}, nil
}
func (*others) OfRuns(_ *db.Tx, runs []string) ([]string, error) { return runs, nil }

func (o *others) DropMessages(_ *db.Tx, boxID, accountID string) error {
	o.dropped = append(o.dropped, boxID+" "+accountID)
	return nil
}

func (o *others) SealKey(_ *db.Tx, boxID string) (string, error) { return o.f.sealKey(boxID), nil }

func (o *others) ForRun(tx *db.Tx, repoID, _ string) ([]protocol.Secret, error) {
	if o.vault == nil {
		return nil, nil
	}
	return o.vault(tx, repoID)
}

func (o *others) Settle(tx *db.Tx, t *task.Row, r *Row, f Ending) (bool, error) {
	if o.settle == nil {
		return false, nil
	}
	return o.settle(tx, t, r, f)
}
