package box

import (
	"context"
	"fmt"
	"math"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

const group = "Fleet boxes (runners)"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadRunners), policy.Require(policy.WriteRunners)
	self := s.Self()
	revoked := op.Refusal{Status: 409, Slug: "box-revoked"}
	return append(s.ownerOps(), []op.Op{
		op.New(op.Row{ID: "box.enroll", Method: "POST", Path: "/v1/runners/enroll",
			Group: group, Rule: policy.Public(), Status: 201, NoStore: true, PerAddress: 60,
			Refuses: []op.Refusal{{Status: 400, Slug: "enrollment-refused"}, {Status: 503, Slug: "no-signing-key"}},
			Summary: "Redeem a one-time enrollment token for a box's credentials",
			Doc: "Called by the joining machine with the one-time token in the header X-Svc-Enroll-Token. The token is used up, a box is " +
				"made, and its credentials are shown this once. A token that is unknown, used or expired is refused in the same words."},
			s.enroll),
		op.New(op.Row{ID: "box.creds_reissue", Method: "POST", Path: "/v1/runners/creds/reissue",
			Group: group, Rule: policy.Public(), Holder: self, NoStore: true, PerAddress: 60,
			Refuses: []op.Refusal{{Status: 403, Slug: "box-revoked"}, {Status: 503, Slug: "no-signing-key"}},
			Summary: "A box renews its own credentials",
			Doc: "Called by the box with its durable token. A new public_key replaces the old one, which is revoked; run_token is null while " +
				"the one it has is good for more than a third of its life. A revoked box is refused."}, s.credsReissue),
		op.New(op.Row{ID: "box.hardening_report", Method: "POST", Path: "/v1/runners/hardening",
			Group: group, Rule: policy.Public(), Holder: self, PerAddress: 60,
			Refuses: []op.Refusal{{Status: 403, Slug: "box-revoked"}},
			Summary: "A box reports its firewall and the ports it exposes",
			Doc:     "Called by the box with its durable token after its firewall was set up. The report replaces the one before."},
			s.hardeningReport),
		op.New(op.Row{ID: "box.join_script", Method: "GET", Path: "/join", Group: group, Rule: policy.Public(), NoStore: true,
			Summary: "The script that joins a machine; the token is not consumed",
			Doc: "Send the enrollment token in the header X-Svc-Enroll-Token, never in the address. Only its form is looked at. A machine " +
				"without the program of this project is given that of this server, if it has the SHA-256 which stands in the script."},
			s.joinScript),
		op.New(op.Row{ID: "box.add", Method: "POST", Path: "/v1/runners/enrollments", Group: group, Rule: write, Status: 201, NoStore: true,
			Summary: "Mint a one-time enrollment token, shown once",
			Doc:     "The token is good for one machine and one hour; join is the line to run there. Only its hash is kept."}, s.add),
		op.New(op.Row{ID: "box.list", Method: "GET", Path: "/v1/runners", Group: group, Rule: read,
			Paging: &op.Paging{Default: 25, Max: 100, Several: []string{"state", "presence"}, Filters: map[string][]string{
				"state": {Enrolled, Draining, Drained, Revoked}, "presence": {Online, Stale, Offline}, "id": nil, "name": nil,
				"outside": {"true"},
			}},
			Summary: "The account's boxes with their presence, newest first; decommissioned ones are left out",
			Doc: "Without a filter every box that was not decommissioned is listed, revoked ones too. filter=id:PART leaves those whose id " +
				"begins or ends with it, filter=name:NAME those of the name. state and presence take several values, as in " +
				"presence:stale,offline. With filter=outside:true the boxes of other accounts are listed instead that may take work of " +
				"this one: outside says of each by whose word, and what it is given. All else here is about the account's own."}, s.list),
		op.New(op.Row{ID: "box.versions", Method: "GET", Path: "/v1/runners/versions",
			Group: group, Rule: read, Paging: &op.Paging{Default: 50, Max: 200},
			Summary: "How many boxes run which version, the commonest first",
			Doc:     "Of the boxes that are not revoked. One that has never reported counts under the empty version."}, s.versions),
		op.New(op.Row{ID: "box.get", Method: "GET", Path: "/v1/runners/{id}", Group: group, Rule: read,
			Summary: "One box with its presence",
			Doc:     "With what it last said of itself."}, s.get),
		op.New(op.Row{ID: "box.revoke", Method: "POST", Path: "/v1/runners/{id}/revoke", Group: group, Rule: write,
			Summary: "Cut a box off for good; again is no error",
			Doc: "Its work goes back into the queue, its tokens are dead at once, and its live connection is cut. It cannot be taken back: " +
				"enrol the machine anew. Answers cascade_failed when the connection could not be cut yet; that is tried until it succeeds."}, s.revoke),
		op.New(op.Row{ID: "box.drain", Method: "POST", Path: "/v1/runners/{id}/drain", Group: group, Rule: write,
			Refuses: []op.Refusal{revoked},
			Summary: "Take a box out of the pool and have its work put back into the queue, or let it in again, which calls off a decommission",
			Doc: "A drained box keeps its place and takes no new work; with resume it takes work again. What it holds goes back into the " +
				"queue, uncharged. A revoked box is refused."}, s.drain),
		op.New(op.Row{ID: "box.decommission", Method: "POST", Path: "/v1/runners/{id}/decommission", Group: group, Rule: write,
			Summary: "Drain a box, revoke it once it has handed its work back or its grace is over, and take it off the list",
			Doc:     "As box.revoke, and the box is no longer listed."}, s.decommission),
		op.New(op.Row{ID: "box.reissue_creds", Method: "POST", Path: "/v1/runners/{id}/creds/reissue", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 503, Slug: "no-signing-key"}},
			Summary: "Make a healthy box renew all its credentials",
			Doc:     "The box gets a command to renew, and does so when it next hears it. A revoked box is 404."}, s.reissueCreds),
		op.New(op.Row{ID: "box.set_owner", Method: "PUT", Path: "/v1/runners/{id}/owner", Group: group, Rule: write,
			Refuses: []op.Refusal{revoked, {Status: 422, Slug: "owner-not-possible"}},
			Summary: "Choose whose work a box takes",
			Doc: "Only a platform admin can share a box with every account; a user must be a member of this one. To make it another " +
				"member's changes nothing by itself: that member is asked, which consent says, and agrees at self.runner_agree. A revoked box is refused."},
			s.setOwner),
		op.New(op.Row{ID: "box.set_prompt", Method: "PUT", Path: "/v1/runners/{id}/prompt", Group: group, Rule: write,
			Summary: "Set or clear what every agent on a box is told",
			Doc:     "The text is part of every brief of a run on the box, from the next one on."}, s.setPrompt),
	}...)
}

// Self is the credential by which a box proves itself over HTTPS.
func (s *Service) Self() *op.Holder {
	return &op.Holder{Scheme: "box", Doc: "The durable token of a box (dev_run_…).", Admit: s.admit}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Box], error) {
	var rows []row
	var now time.Time
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		now = tx.Now
		rows, err = s.page(tx, in.PageIn)
		return err
	})
	if err != nil {
		return op.Page[Box]{}, err
	}
	return op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) },
		func(r row) Box { return r.wire(now) }), nil
}

// Version counts the boxes that run one version. Boxes that have not reported
// any count under the empty version.
type Version struct {
	_       struct{} `doc:"How many boxes run one version."`
	Version string   `json:"version" example:"1.4.0" doc:"as the boxes said it; empty: they have not"`
	Boxes   int64    `json:"boxes" example:"3" doc:"boxes that run it"`
	Online  int64    `json:"online" example:"2" doc:"those of them that are online"`
}

type versionsIn struct {
	op.PageIn
}

func (s *Service) versions(ctx context.Context, in versionsIn) (op.Page[Version], error) {
	var rows []Version
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = versions.All(tx, tx.Account)
		return err
	})
	return op.Cut(in.PageIn, rows,
		func(v Version) []string { return []string{fmt.Sprintf("%019d", math.MaxInt64-v.Boxes), v.Version} }), err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the box"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Box, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := s.find(tx, in.ID, false)
		out = r.wire(tx.Now)
		return err
	})
	return out, err
}

type drainIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the box"`
	Resume bool   `json:"resume,omitempty" doc:"true takes a drain back"`
}

// Drain is the answer of box.drain.
type Drain struct {
	_        struct{}         `doc:"The state of the box after box.drain."`
	ID       string           `json:"id" format:"uuid" doc:"id of the box"`
	State    measure.BoxState `json:"state" example:"draining" doc:"drained at once when the box is offline"`
	Requeued int              `json:"requeued" doc:"tasks that this call put back into the queue: those in flight on a box that is offline, and cannot hand them back itself"`
	Handing  int              `json:"handing_back" doc:"tasks in flight that the box was told to hand back, with what was done saved: each is in the queue again once it has, or once its lease runs out"`
}

func (s *Service) drain(ctx context.Context, in drainIn) (out Drain, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.find(tx, in.ID, true)
		if err != nil {
			return err
		}
		out = Drain{ID: r.ID, State: measure.BoxState(r.State)}
		switch {
		case r.State == Revoked:
			return alreadyRevoked()
		case in.Resume == (r.State == Enrolled):
			if !in.Resume {
				out.Handing = handing(r, tx.Now)
			}
			return nil // nothing changes
		case in.Resume:
			out.State = Enrolled
			err = s.Enqueue(tx, r.ID, protocol.Command{Kind: protocol.CommandResume})
		default:
			out, err = s.empty(tx, r)
		}
		if err != nil {
			return err
		}
		if _, err := setState.Exec(tx, tx.Account, r.ID, out.State); err != nil {
			return err
		}
		s.wake(tx, tx.Account)
		kind := drainedEvent
		if in.Resume {
			kind = resumedEvent
		}
		return kind.Record(tx, event.Subject{ID: r.ID}, drainData{Handing: out.Handing, Requeued: out.Requeued})
	})
	return out, err
}

// empty makes a box hand back its work: the box does so itself and saves the
// state of each run. If the box is offline, its tasks go back into the queue as
// they are.
func (s *Service) empty(tx *db.Tx, r row) (out Drain, err error) {
	out = Drain{ID: r.ID, State: Draining, Handing: handing(r, tx.Now)}
	if err := s.Enqueue(tx, r.ID, protocol.Command{Kind: protocol.CommandDrain, Mode: protocol.HaltGraceful}); err != nil {
		return out, err
	}
	if presenceAt(r.Presence, r.LastBeatAt, tx.Now) == Offline {
		out.State = Drained
		out.Requeued, err = s.Runs.Drained(tx, r.ID)
	}
	return out, err
}

// handing returns how many runs the box will hand back if it is drained.
func handing(r row, now time.Time) int {
	if presenceAt(r.Presence, r.LastBeatAt, now) == Offline {
		return 0
	}
	return r.Active
}

// alreadyRevoked is the fault for a change of a revoked box.
func alreadyRevoked() *fault.Error {
	return fault.Reason("box-revoked", "The box is revoked, which is for good.")
}

// wake wakes the claims that wait for work, and the views of an account's queue,
// after a change of its fleet.
func (s *Service) wake(tx *db.Tx, accountID string) {
	s.Hub.Notify(tx, event.QueueTopic(accountID), event.QueueTopic(""))
}

// Reissue is the answer of box.reissue_creds.
type Reissue struct {
	_         struct{} `doc:"The command that a box was given."`
	ID        string   `json:"id" format:"uuid" doc:"id of the box"`
	CommandID string   `json:"command_id" format:"uuid" doc:"of the command that makes the box renew"`
}

func (s *Service) reissueCreds(ctx context.Context, in idIn) (out Reissue, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if r.State == Revoked {
			return fault.Missing("box")
		}
		if s.Bus == nil {
			return unavailable()
		}
		out = Reissue{ID: r.ID, CommandID: id.New()}
		if _, err := setRotate.Exec(tx, tx.Account, r.ID); err != nil {
			return err
		}
		if err := s.Enqueue(tx, r.ID, protocol.Command{ID: out.CommandID, Kind: protocol.CommandRotate}); err != nil {
			return err
		}
		return rotateEvent.Record(tx, event.Subject{ID: r.ID}, event.None{})
	})
	return out, err
}

type promptIn struct {
	ID     string  `json:"id" format:"uuid" doc:"id of the box"`
	Prompt *string `json:"prompt" required:"true" maxLength:"2000" example:"This machine has no GPU." doc:"what every agent on it is told; null clears it"`
}

func (s *Service) setPrompt(ctx context.Context, in promptIn) (out Box, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if in.Prompt != nil && *in.Prompt == "" {
			in.Prompt = nil
		}
		if _, err := setBriefing.Exec(tx, tx.Account, r.ID, in.Prompt); err != nil {
			return err
		}
		r.Briefing = in.Prompt
		out = r.wire(tx.Now)
		return promptSetEvent.Record(tx, event.Subject{ID: r.ID}, promptData{Cleared: in.Prompt == nil})
	})
	return out, err
}
