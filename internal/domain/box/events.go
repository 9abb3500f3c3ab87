package box

import (
	"time"

	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// Topic is the list of boxes that clients follow.
var Topic = &event.Topic{Name: "runners", Scope: policy.ReadRunners, Key: "box_id"}

// The data of events.
type (
	enrollmentData struct {
		Expires time.Time `json:"expires" doc:"when the token expires"`
		Name    string    `json:"name" doc:"name of the box; empty: what the machine calls itself"`
	}
	enrolledData struct {
		EnrollmentID string `json:"enrollment_id" doc:"the enrollment that it joined with"`
		Name         string `json:"name" doc:"name of the box"`
	}
	reissuedData struct {
		NewKey   bool `json:"new_key" doc:"whether it has a new key"`
		NewToken bool `json:"new_token" doc:"whether it has a new durable token"`
	}
	hardeningData struct {
		ExposedPorts int    `json:"exposed_ports" doc:"how many ports listen at addresses other than loopback"`
		Firewall     string `json:"firewall" doc:"active, inactive, absent, or unknown to the box"`
	}
	reportedData struct {
		Agents         []protocol.AgentInfo `json:"agents" doc:"the coding agents found on it"`
		Isolation      []string             `json:"isolation" doc:"the levels its sandbox has, best first"`
		IsolationHolds Holds                `json:"isolation_holds" doc:"what each level held when the box last tried it"`
		Slots          int64                `json:"slots" doc:"runs it takes at once"`
		Version        string               `json:"version" doc:"of the program on it"`
	}
	onlineData struct {
		Version string `json:"version" doc:"of the program on it"`
	}
	quietData struct {
		LastBeat *time.Time `json:"last_beat" doc:"when it last said something"`
		Left     bool       `json:"left,omitempty" doc:"true: it said that it is stopped; left out: it fell silent"`
	}
	unfitData struct {
		Reason string `json:"reason" doc:"what is wrong with it, in its own words"`
	}
	drainData struct {
		Handing  int `json:"handing_back" doc:"tasks in flight that it was told to hand back"`
		Requeued int `json:"requeued" doc:"tasks that were put back into the queue"`
	}
	ownerData struct {
		ID     *string `json:"id" doc:"the account or user; null when it is shared"`
		Target string  `json:"target" doc:"shared, org or user"`
	}
	askedData struct {
		UserID string `json:"user_id" doc:"the member who was asked to own it"`
	}
	consentData struct {
		Account string `json:"account_id" doc:"the account whose work it is about"`
		UserID  string `json:"user_id" doc:"whose work"`
	}
	promptData struct {
		Cleared bool `json:"cleared" doc:"true: its briefing was taken away"`
	}
	retiringData struct {
		Handing   int       `json:"handing_back" doc:"tasks in flight that it was told to hand back"`
		RevokesAt time.Time `json:"revokes_at" doc:"when it is revoked at the latest"`
	}
	retiredData struct {
		AskedBy  *string `json:"asked_by" doc:"who asked for it a while ago; null: the actor of the event"`
		Name     string  `json:"name" doc:"name of the box"`
		Requeued int     `json:"requeued" doc:"tasks that were put back into the queue"`
	}
	revokedData struct {
		Requeued int `json:"requeued" doc:"tasks that were put back into the queue"`
	}
)

// The events of a box.
var (
	mintedEvent    = event.Declare[enrollmentData]("box.enrollment_minted", Topic, "Somebody made a one-time token for a machine to join.")
	enrolledEvent  = event.Declare[enrolledData]("box.enrolled", Topic, "A machine joined as a box.")
	rotateEvent    = event.Declare[event.None]("box.reissue_requested", Topic, "Somebody told the box to renew its credentials.")
	reissuedEvent  = event.Declare[reissuedData]("box.creds_reissued", Topic, "The box renewed its credentials.")
	hardeningEvent = event.Declare[hardeningData]("box.hardening_reported", Topic, "The box reported how its machine is protected.")
	reportedEvent  = event.Declare[reportedData]("box.reported", Topic, "The box says something new of itself.")
	onlineEvent    = event.Declare[onlineData]("box.online", Topic, "The box is there.")
	staleEvent     = event.Declare[quietData]("box.stale", Topic, "The box has said nothing for a while.")
	offlineEvent   = event.Declare[quietData]("box.offline", Topic, "The box is gone.")
	FitEvent       = event.Declare[event.None]("box.fit", Topic, "The box can carry out runs again.")
	UnfitEvent     = event.Declare[unfitData]("box.unfit", Topic, "The box cannot carry out runs.")
	drainedEvent   = event.Declare[drainData]("box.drained", Topic, "Somebody had the box take no new work.")
	resumedEvent   = event.Declare[drainData]("box.resumed", Topic, "Somebody had the box take work again.")
	emptiedEvent   = event.Declare[event.None]("box.emptied", Topic, "The box, which takes no new work, has handed back its last.")
	ownerSetEvent  = event.Declare[ownerData]("box.owner_set", Topic, "Somebody said whose work the box takes.")
	OwnerAsked     = event.Declare[askedData]("box.owner_asked", Topic, "A member was asked to own the box.")
	ownerDeclined  = event.Declare[askedData]("box.owner_declined", Topic, "A member who was asked to own the box will not.")
	consentGiven   = event.Declare[consentData]("box.consent_given", Topic, "The owner of the box agreed that it takes their work in an account.")
	consentTaken   = event.Declare[consentData]("box.consent_withdrawn", Topic, "The owner of the box took back that it takes their work in an account.")
	promptSetEvent = event.Declare[promptData]("box.prompt_set", Topic, "Somebody said what agents on the box are told.")
	retiringEvent  = event.Declare[retiringData]("box.decommission_requested", Topic, "The box hands its work back, and is revoked then.")
	retiredEvent   = event.Declare[retiredData]("runner.decommissioned", Topic, "The box was taken off the list.")
	revokedEvent   = event.Declare[revokedData]("box.revoked", Topic, "The box was revoked.")
)

// AskEnded are the events with which nobody is asked any more to own the box.
var AskEnded = []event.Any{OwnerAsked, ownerSetEvent, ownerDeclined, revokedEvent, retiredEvent}

// quietEvents are the events of a box without beats, by its new presence.
var quietEvents = map[string]event.Kind[quietData]{Stale: staleEvent, Offline: offlineEvent}

// Farewell names a box that stops, and the runs that the box still holds.
type Farewell struct {
	BoxID string
	Held  []protocol.RunRef
}

// Added is sent in the transaction that enrolls a box. An error undoes it.
var Added = event.DeclareSignal[event.None]("box.added", "A box is being enrolled.")

// Left is sent, with the box locked, when a box says that it stops. It has lost
// all runs that Held does not name.
var Left = event.DeclareSignal[Farewell]("box.left", "A box was stopped.")
