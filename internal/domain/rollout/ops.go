package rollout

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Fleet boxes (runners)"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadRunners), policy.Require(policy.WriteRunners)
	return []op.Op{
		op.New(op.Row{ID: "box.update", Method: "POST", Path: "/v1/runners/update", Group: group, Rule: write, Status: 202,
			Refuses: []op.Refusal{{Status: 409, Slug: "release-halted"}},
			Summary: "Bring the account's boxes to a release: a canary, a soak, bounded waves; again joins the rollout under way",
			Doc: "Without a version, to the newest of the channel that the account follows. It halts itself when a box does not come up, " +
				"falls silent, or runs fail more often. kind nothing: no box takes part, and boxes says why."}, s.start),
		op.New(op.Row{ID: "box.rollout", Method: "GET", Path: "/v1/runners/rollout", Group: group, Rule: read,
			Summary: "The newest rollout of the account, with what became of each box",
			Doc:     "One that has ended is the newest until another one begins."}, s.get),
		op.New(op.Row{ID: "box.rollout_cancel", Method: "POST", Path: "/v1/runners/rollout/cancel", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "End the rollout under way; boxes that run the release keep it",
			Doc:     "Of one that has ended, nothing changes. 404: there was none."}, s.cancel),
		op.New(op.Row{ID: "box.pins", Method: "GET", Path: "/v1/runners/pins", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 50, Max: 200},
			Summary: "Which channels boxes follow, and which take no updates",
			Doc:     "Without a word about it, a box follows builtin, the server's own program."}, s.pins),
		op.New(op.Row{ID: "box.pin", Method: "PUT", Path: "/v1/runners/pins", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Say which channel the account, boxes with a label, or one box follow, and whether they take updates",
			Doc:     "The narrowest word counts. What is left out is as the next wider one says; with neither channel nor pinned the row is gone."}, s.pin),
	}
}

// Counts are how many boxes are in which state.
type Counts struct {
	_            struct{} `doc:"How many boxes of a rollout are in which state." schema:"RolloutCounts"`
	Waits        int      `json:"waits" doc:"for their wave"`
	Told         int      `json:"told" doc:"they are taking it"`
	Good         int      `json:"good" doc:"they have done a test run with it"`
	Failed       int      `json:"failed" doc:"they go on with the program of before"`
	Lost         int      `json:"lost" doc:"they fell silent, or did not get there in two days"`
	Current      int      `json:"current" doc:"they have it already, or a later one"`
	Pinned       int      `json:"pinned" doc:"they take no updates, because somebody said so"`
	OtherChannel int      `json:"other_channel" doc:"they follow another channel"`
	Away         int      `json:"away" doc:"they are offline, draining or gone"`
	Unbuilt      int      `json:"unbuilt" doc:"it is not built for their machine"`
	Unreachable  int      `json:"unreachable" doc:"no steps lead there from their version"`
	Unable       int      `json:"unable" doc:"their program cannot update itself, or knows no key"`
}

func counted(boxes []boxRow) (out Counts) {
	of := map[string]*int{
		Waits: &out.Waits, Told: &out.Told, Good: &out.Good, Failed: &out.Failed, Lost: &out.Lost, Current: &out.Current,
		Pinned: &out.Pinned, OtherChannel: &out.OtherChannel, Away: &out.Away, Unbuilt: &out.Unbuilt, Unreachable: &out.Unreachable,
		Unable: &out.Unable,
	}
	for _, b := range boxes {
		*of[b.State]++
	}
	return out
}

// Rates are the runs that failed, of those that ended.
type Rates struct {
	_            struct{} `doc:"Runs that failed, of those that ended. The rollout halts where, of five or more after the update, 20 of a hundred more fail." schema:"RolloutRates"`
	Failed       int64    `json:"failed" example:"1" doc:"on updated boxes"`
	Runs         int64    `json:"runs" example:"12" doc:"on updated boxes"`
	FailedBefore int64    `json:"failed_before" example:"9" doc:"in the week before"`
	RunsBefore   int64    `json:"runs_before" example:"120" doc:"in the week before"`
}

// Rollout brings boxes to a release.
type Rollout struct {
	_         struct{}     `doc:"A rollout of a release to the boxes of an account." schema:"Rollout"`
	ID        string       `json:"id" format:"uuid" doc:"its id"`
	Channel   string       `json:"channel" example:"builtin" doc:"channel of the release"`
	Version   string       `json:"version" example:"v1.4.0" doc:"version of the release"`
	State     State        `json:"state" example:"soaking" doc:"halted: by itself; why says why"`
	Wave      int64        `json:"wave" example:"1" doc:"wave that is under way; 1: the canary"`
	Waves     int64        `json:"waves" example:"4" doc:"how many there are"`
	SoakUntil *time.Time   `json:"soak_until" example:"null" doc:"until when the canary is watched; null: it is not there yet"`
	Why       *string      `json:"why" example:"null" doc:"why it was halted"`
	Counts    Counts       `json:"counts" doc:"boxes by state"`
	Runs      Rates        `json:"runs" doc:"how runs went"`
	Boxes     []RolloutBox `json:"boxes" maxItems:"200" doc:"by wave, those without one first; at most 200"`
	More      int          `json:"more_boxes" example:"0" doc:"boxes that are not shown"`
	StartedBy string       `json:"started_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who started it"`
	CreatedAt time.Time    `json:"created_at" doc:"when"`
	ChangedAt time.Time    `json:"changed_at" doc:"when its state or wave changed"`
	EndedAt   *time.Time   `json:"ended_at" example:"null" doc:"when it ended; null: it is under way"`
}

// RolloutBox is what became of a box.
type RolloutBox struct {
	_     struct{} `doc:"What became of a box in a rollout." schema:"RolloutBox"`
	ID    string   `json:"id" format:"uuid" doc:"id of the box"`
	Name  string   `json:"name" example:"build-3" doc:"its name; empty: it is gone"`
	Wave  int64    `json:"wave" example:"2" doc:"0: it takes no part"`
	State BoxState `json:"state" example:"told" doc:"as in counts"`
	Why   string   `json:"why" example:"" doc:"why, where that is not plain"`
	From  string   `json:"from_version" example:"v1.3.0" doc:"that it had"`
	Step  string   `json:"step" example:"v1.4.0" doc:"that it was told to take last; empty: none yet"`
	Says  string   `json:"says" example:"fetching" doc:"state of its update, in its own words; empty: none"`
}

const mostShown = 200

func (s *Service) show(tx *db.Tx, r row) (out Rollout, err error) {
	boxes, err := boxesOf.All(tx, r.ID)
	if err != nil {
		return out, err
	}
	all, err := s.Boxes.Standings(tx)
	if err != nil {
		return out, err
	}
	now := map[string]box.Standing{}
	for _, b := range all {
		now[b.ID] = b
	}
	out = Rollout{
		ID: r.ID, Channel: r.Channel, Version: r.Version, State: State(r.State), Wave: r.Wave, SoakUntil: r.SoakUntil,
		Why:    db.NullText(r.Why),
		Counts: counted(boxes),
		Runs:   Rates{Failed: r.FailedAfter, Runs: r.RunsAfter, FailedBefore: r.FailedBefore, RunsBefore: r.RunsBefore},
		Boxes:  []RolloutBox{}, StartedBy: r.StartedBy, CreatedAt: r.CreatedAt, ChangedAt: r.ChangedAt, EndedAt: r.EndedAt,
	}
	for i, b := range boxes {
		out.Waves = max(out.Waves, b.Wave)
		if i >= mostShown {
			out.More++
			continue
		}
		says := ""
		if u := now[b.BoxID].Update; u != nil && u.Command == b.CommandID && b.CommandID != "" {
			says = u.State
		}
		out.Boxes = append(out.Boxes, RolloutBox{
			ID: b.BoxID, Name: now[b.BoxID].Name, Wave: b.Wave, State: BoxState(b.State), Why: b.Why, From: b.FromVersion,
			Step: b.Step, Says: says,
		})
	}
	return out, nil
}

type startIn struct {
	Channel string `json:"channel,omitempty" pattern:"^[a-z][a-z0-9-]{0,31}$" example:"builtin" doc:"left out: the one that the account follows"`
	Version string `json:"version,omitempty" maxLength:"64" example:"v1.4.0" doc:"left out: the newest that can be installed"`
	SoakS   *int64 `json:"soak_s,omitempty" unit:"seconds" minimum:"0" maximum:"86400" example:"600" doc:"seconds for which the canary is watched; left out: 600"`
}

const defaultSoak = 600

// publishTime is enough for reading a program of any size.
const publishTime = 10 * time.Second

// Started is the answer of box.update.
type Started struct {
	_       struct{} `doc:"What box.update started." schema:"UpdateStarted"`
	Kind    string   `json:"kind" enum:"started,joined,nothing" example:"started" doc:"joined: one was under way; nothing: no box takes part"`
	Channel string   `json:"channel" example:"builtin" doc:"channel of the release"`
	Version string   `json:"version" example:"v1.4.0" doc:"its version; empty: the channel has none"`
	Boxes   Counts   `json:"boxes" doc:"boxes by state"`
	Rollout *Rollout `json:"rollout" doc:"the one that is under way; null: none"`
}

// publish puts the server's own program into the ledger if that is what boxes are to be brought to,
// since a server that was just upgraded may be asked before it is there. Another channel has nothing
// of it. That is no part of the call, which may be undone or repeated.
func (s *Service) publish(ctx context.Context, channel string) error {
	if channel == "" {
		if err := s.DB.Read(ctx, func(tx *db.Tx) error {
			p, err := policies(tx)
			channel = p.channelOf()
			return err
		}); err != nil {
			return err
		}
	}
	if channel != release.BuiltIn {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), publishTime)
	defer stop()
	return s.Releases.PublishOwn(ctx)
}

func (s *Service) start(ctx context.Context, in startIn) (out Started, err error) {
	if err := s.publish(ctx, in.Channel); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, ok, err := live.Maybe(tx, tx.Account)
		if err == nil && ok {
			out, err = s.joined(tx, r)
		} else if err == nil {
			out, err = s.begin(tx, in)
		}
		return err
	})
	if db.IsUnique(err) { // somebody else started one at the same moment
		err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
			r, ok, err := live.Maybe(tx, tx.Account)
			if err == nil && !ok {
				err = fault.New(fault.Conflict, "", "Another rollout has just ended: try again.")
			}
			if err == nil {
				out, err = s.joined(tx, r)
			}
			return err
		})
	}
	return out, err
}

func (s *Service) joined(tx *db.Tx, r row) (Started, error) {
	shown, err := s.show(tx, r)
	return Started{Kind: "joined", Channel: r.Channel, Version: r.Version, Boxes: shown.Counts, Rollout: &shown}, err
}

// begin plans a rollout, and starts it if a box takes part.
func (s *Service) begin(tx *db.Tx, in startIn) (out Started, err error) {
	p, err := policies(tx)
	if err != nil {
		return out, err
	}
	r := row{
		ID: id.New(), AccountID: tx.Account, Channel: cmp.Or(in.Channel, p.channelOf()), Version: in.Version, State: Preparing,
		SoakS: defaultSoak, StartedBy: policy.From(tx.Context()).Label(), CreatedAt: tx.Now, ChangedAt: tx.Now,
	}
	if in.SoakS != nil {
		r.SoakS = *in.SoakS
	}
	builds, err := s.Releases.Builds(tx, r.Channel)
	if err != nil {
		return out, err
	}
	if err := available(builds, &r, in); err != nil {
		return out, err
	}
	all, err := s.Boxes.Standings(tx)
	if err != nil {
		return out, err
	}
	boxes := plan(r, all, p, builds)
	out = Started{Kind: "nothing", Channel: r.Channel, Version: r.Version, Boxes: counted(boxes)}
	if out.Boxes.Waits == 0 {
		return out, nil
	}
	before, err := s.Runs.Outcomes(tx, tx.Now.Add(-7*24*time.Hour))
	if err != nil {
		return out, err
	}
	for _, o := range before {
		r.RunsBefore++
		if o.Failed {
			r.FailedBefore++
		}
	}
	if err := forget(tx); err != nil {
		return out, err
	}
	if _, err := insert.Exec(tx, r); err != nil {
		return out, err
	}
	for _, b := range boxes {
		if _, err := insertBox.Exec(tx, b); err != nil {
			return out, err
		}
	}
	s.queue.Add(tx, r.ID, due.Entry{Account: tx.Account})
	shown, err := s.show(tx, r)
	if err != nil {
		return out, err
	}
	out.Kind, out.Rollout = "started", &shown
	return out, startedEvent.Record(tx, event.Subject{ID: r.ID},
		startedData{Channel: r.Channel, Version: r.Version, Boxes: out.Boxes.Waits})
}

// available holds that a release is there and not halted, and completes its version.
func available(builds []release.Build, r *row, in startIn) error {
	if in.Version == "" {
		r.Version = release.Newest(builds)
		return nil
	}
	halted := ""
	for _, b := range builds {
		if b.Version == in.Version && b.Halted == "" {
			return nil
		}
		if b.Version == in.Version {
			halted = b.Halted
		}
	}
	if halted != "" {
		return fault.Reason("release-halted", "The release was "+halted)
	}
	return fault.Field("version", "is not in the ledger of the channel")
}

// errNone says that there is none to end.
var errNone = fault.New(fault.NotFound, "", "There was no rollout yet.")

// Newest is the answer of box.rollout.
type Newest struct {
	_       struct{} `doc:"The newest rollout of an account." schema:"NewestRollout"`
	Rollout *Rollout `json:"rollout" doc:"null: there was none"`
}

func (s *Service) get(ctx context.Context, _ op.None) (out Newest, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := newest.Maybe(tx, tx.Account)
		if err != nil || !ok {
			return err
		}
		shown, err := s.show(tx, r)
		out.Rollout = &shown
		return err
	})
	return out, err
}

func (s *Service) cancel(ctx context.Context, _ op.None) (out Rollout, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, ok, err := newest.ForUpdate().Maybe(tx, tx.Account)
		if err == nil && !ok {
			err = errNone
		}
		if err == nil && r.EndedAt == nil {
			boxes, failed := boxesOf.All(tx, r.ID)
			if err = failed; err == nil {
				err = s.end(tx, &r, boxes, Cancelled, "")
			}
		}
		if err == nil {
			out, err = s.show(tx, r)
		}
		return err
	})
	return out, err
}

// Pin says which channel boxes follow, and whether they take updates.
type Pin struct {
	_       struct{}  `doc:"Which channel boxes follow, and whether they take updates." schema:"UpdatePin"`
	Scope   PinScope  `json:"scope" example:"label" doc:"which boxes"`
	Ref     string    `json:"ref" example:"zone=eu" doc:"of label NAME=VALUE, of box its id; empty: the account"`
	Channel *string   `json:"channel" example:"stable" doc:"null: as the next wider scope says"`
	Pinned  *bool     `json:"pinned" example:"true" doc:"true: they take no updates; null: as the next wider scope says"`
	Why     string    `json:"why" example:"audited until June" doc:"for those who wonder"`
	SetBy   string    `json:"set_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who said so"`
	SetAt   time.Time `json:"set_at" doc:"when"`
}

func (p pinRow) wire() Pin {
	return Pin{Scope: PinScope(p.Scope), Ref: p.Ref, Channel: db.NullText(p.Channel), Pinned: p.Pinned, Why: p.Why,
		SetBy: p.SetBy, SetAt: p.SetAt}
}

type pinsIn struct{ op.PageIn }

func (s *Service) pins(ctx context.Context, in pinsIn) (op.Page[Pin], error) {
	var out []Pin
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := policies(tx)
		out = nil
		for _, r := range rows {
			out = append(out, r.wire())
		}
		return err
	})
	return op.Cut(in.PageIn, out, func(p Pin) []string { return []string{string(p.Scope), p.Ref} }), err
}

// mostPins bounds the rows of an account.
const mostPins = 200

type pinIn struct {
	Scope   PinScope `json:"scope" example:"box" doc:"which boxes"`
	Ref     string   `json:"ref,omitempty" maxLength:"900" example:"zone=eu" doc:"of label NAME=VALUE, of box its id; left out: the account"`
	Channel *string  `json:"channel,omitempty" pattern:"^[a-z][a-z0-9-]{0,31}$" example:"stable" doc:"left out: as the next wider scope says"`
	Pinned  *bool    `json:"pinned,omitempty" example:"true" doc:"true: they take no updates; left out: as the next wider scope says"`
	Why     string   `json:"why,omitempty" maxLength:"500" example:"audited until June" doc:"for those who wonder"`
}

func (s *Service) pin(ctx context.Context, in pinIn) (out Pin, err error) {
	r := pinRow{Scope: string(in.Scope), Ref: in.Ref, Pinned: in.Pinned, Why: in.Why, SetBy: policy.From(ctx).Label()}
	if in.Channel != nil {
		r.Channel = *in.Channel
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := s.checkRef(tx, in); err != nil {
			return err
		}
		r.AccountID, r.SetAt = tx.Account, tx.Now
		out = r.wire()
		if in.Channel == nil && in.Pinned == nil {
			if n, err := dropPin.Exec(tx, tx.Account, r.Scope, r.Ref); err != nil || n == 0 {
				return err
			}
		} else if all, err := policies(tx); err != nil {
			return err
		} else if len(all) >= mostPins && !slices.ContainsFunc(all, func(p pinRow) bool { return p.Scope == r.Scope && p.Ref == r.Ref }) {
			return fault.New(fault.Conflict, "", "There are 200 rows already: take one away first.")
		} else if _, err := setPin.Exec(tx, r); err != nil {
			return err
		}
		return pinnedEvent.Record(tx, event.Subject{ID: tx.Account},
			pinData{Scope: r.Scope, Ref: r.Ref, Channel: r.Channel, Pinned: r.Pinned, Why: r.Why})
	})
	return out, err
}

// checkRef holds that a pin is about something.
func (s *Service) checkRef(tx *db.Tx, in pinIn) error {
	switch in.Scope {
	case OfAccount:
		if in.Ref != "" {
			return fault.Field("ref", "is left out for the account")
		}
	case OfLabel:
		if name, _, ok := strings.Cut(in.Ref, "="); !ok || name == "" {
			return fault.Field("ref", "is not NAME=VALUE of a label")
		}
	case OfBox:
		all, err := s.Boxes.Standings(tx)
		if err != nil {
			return err
		}
		for _, b := range all {
			if b.ID == in.Ref {
				return nil
			}
		}
		return fault.Missing("box")
	}
	return nil
}
