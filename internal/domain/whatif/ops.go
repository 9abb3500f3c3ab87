package whatif

import (
	"context"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

const (
	// mostTries is how many tries are played: a few seconds of a processor.
	mostTries = 20_000
	// defaultHours is how far back unless the caller says so: a week.
	defaultHours = 168
)

// Needs are the dependencies of Service.
type Needs struct{ DB *db.DB }

// Service plays the queues of accounts.
type Service struct {
	Needs
	turn chan struct{} // one is played at a time on a node
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, turn: make(chan struct{}, 1)}
}

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "task.simulate", Method: "POST", Path: "/v1/queue/simulate", Group: "Tasks",
			Rule:    policy.Require(policy.ReadTasks),
			Summary: "What other boxes or another policy would have meant for the queue as it was",
			Doc:     "Plays the tries of task.history on a virtual clock, in the order that claims have. Nothing is changed, and it is no forecast."},
			s.simulate),
	}
}

type simulateIn struct {
	Hours  int64  `json:"hours,omitempty" minimum:"1" maximum:"744" example:"168" doc:"how far back; 168 unless sent"`
	Slots  int64  `json:"slots,omitempty" minimum:"0" maximum:"100000" example:"8" doc:"tasks at once; 0: as many as there were at most"`
	Seats  int64  `json:"seats,omitempty" minimum:"0" maximum:"100000" example:"0" doc:"agents at once, checks take none; 0: as many as slots"`
	Policy string `json:"policy,omitempty" maxLength:"65536" example:"version: 1" doc:"text of a policy file, for all repositories; left out: what was in force"`
}

func (s *Service) simulate(ctx context.Context, in simulateIn) (out Found, err error) {
	if in.Hours == 0 {
		in.Hours = defaultHours
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	var all []Try
	var now time.Time
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var whole bool
		now = tx.Now
		all, whole, err = queue.Tries(tx, now.Add(-time.Duration(in.Hours)*time.Hour), mostTries)
		if err == nil && !whole {
			err = fault.Field("hours", fmt.Sprintf("has more than %d tries: ask for fewer", mostTries))
		}
		return err
	})
	if err != nil {
		return out, err
	}
	var file []byte
	if in.Policy != "" {
		file = []byte(in.Policy)
	}
	out, wrong := Simulate(all, file, Machines{Slots: int(in.Slots), Seats: int(in.Seats)}, now)
	if len(wrong) > 0 {
		err = fault.Field("policy", strings.Join(wrong, "; "))
	}
	return out, err
}
