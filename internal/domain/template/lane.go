package template

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
)

// enough is how many tasks of each lane must have ended before one may be called better.
const enough = 30

// Lanes is what came of a template and its challenger.
type Lanes struct {
	_      struct{} `doc:"What came of the tasks that a template and its challenger have got." schema:"TemplateLanes"`
	Least  int64    `json:"least" example:"30" doc:"tasks of each lane that must have ended before a winner is named"`
	Winner *string  `json:"winner" example:"null" doc:"the lane of which more is merged, if the intervals do not touch; null: there is none, or too few have ended"`
	Lanes  []Lane   `json:"lanes" doc:"by name: the template, and whoever has challenged it"`
}

// Lane is one of them.
type Lane struct {
	_            struct{} `doc:"What came of the tasks that one template has got." schema:"TemplateLane"`
	Template     string   `json:"template" example:"careful" doc:"its name"`
	Tasks        int64    `json:"tasks" example:"41" doc:"that it has got in the split"`
	Merged       Share    `json:"merged" doc:"of those that ended and were not cancelled"`
	Reverted     Share    `json:"reverted" doc:"of the pull requests that were merged"`
	CostUSD      *string  `json:"cost_usd" format:"decimal" example:"12.50" doc:"of all of them with their repair, decimal US dollars; null: no call had a price"`
	HumanMinutes int64    `json:"human_minutes" example:"90" doc:"between the questions about their merges and the answers of people: what those took at most"`
}

// Share is a rate with its interval.
type Share struct {
	_    struct{} `doc:"How often, and the 95 % interval by Wilson." schema:"TemplateShare"`
	N    int64    `json:"n" example:"33" doc:"how many"`
	D    int64    `json:"d" example:"40" doc:"of how many"`
	Low  float64  `json:"low" example:"0.68" doc:"the true rate is hardly lower"`
	High float64  `json:"high" example:"0.91" doc:"nor higher"`
}

func share(r measure.Rate) Share {
	low, high := r.Wilson()
	return Share{N: r.N, D: r.D, Low: low, High: high}
}

// lanes reads what came of the lanes of a template of tx.Account; nil if no task was split.
func lanes(tx *db.Tx, name string) (*Lanes, error) {
	all, err := measure.LanesOf(tx, name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	out := &Lanes{Least: enough}
	for _, l := range all {
		out.Lanes = append(out.Lanes, Lane{
			Template: l.Template, Tasks: l.Tasks, Merged: share(l.Merged), Reverted: share(l.Reverted),
			CostUSD: money.DollarsOrNone(l.Micros), HumanMinutes: l.HumanMinutes,
		})
	}
	out.Winner = winner(out.Lanes)
	return out, nil
}

// winner is the lane of which certainly more is merged than of each other one.
func winner(all []Lane) *string {
	for i, l := range all {
		best := len(all) > 1
		for k, other := range all {
			best = best && l.Merged.D >= enough && (k == i || other.Merged.D >= enough && l.Merged.Low > other.Merged.High)
		}
		if best {
			return &all[i].Template
		}
	}
	return nil
}

// Split tells which template a new task of tx.Account gets that names one: that, or its
// challenger. It goes by the hash of the id, so that nobody chooses.
func Split(tx *db.Tx, name, taskID string) (string, error) {
	t, ok, err := ByName(tx, tx.Account, name)
	if err != nil || !ok || t.Challenger == "" {
		return name, err
	}
	if _, there, err := ByName(tx, tx.Account, t.Challenger); err != nil || !there {
		return name, err
	}
	lane := name
	if hundredth(taskID) < t.Share {
		lane = t.Challenger
	}
	_, err = splitTask.Exec(tx, splitArgs{TaskID: taskID, AccountID: tx.Account, Template: name, Lane: lane, CreatedAt: tx.Now})
	return lane, err
}

// hundredth is 0 to 99, each as often.
func hundredth(taskID string) int64 {
	sum := sha256.Sum256([]byte(taskID))
	return int64(binary.BigEndian.Uint64(sum[:8]) % 100)
}

type splitArgs struct {
	TaskID, AccountID, Template, Lane string
	CreatedAt                         time.Time
}

// challenged refuses a challenger that there is not.
func (t Template) challenged(tx *db.Tx) error {
	if t.Challenger == "" {
		return nil
	}
	_, there, err := ByName(tx, tx.Account, t.Challenger)
	if err == nil && !there {
		err = fault.Field("challenger", "is no template of the account")
	}
	return err
}
