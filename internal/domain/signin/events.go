package signin

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees the events of sign-ins.
var audience = event.Audience(policy.ReadAccount)

// The data of events.
type (
	signedInData struct {
		Method  string `json:"method" enum:"password,email,oidc,github,link" doc:"what vouched for the person"`
		NewUser bool   `json:"new_user" doc:"whether the person was here for the first time"`
		IP      string `json:"ip" shown:"admins" doc:"address that the request came from; shown to who manages members"`
	}
	passwordSetData struct {
		First bool `json:"first" doc:"whether the person had no password before"`
	}
	guessedData struct {
		Tries int64  `json:"tries" doc:"wrong tries in a row"`
		IP    string `json:"ip" shown:"admins" doc:"address that the last of them came from; shown to who manages members"`
	}
)

// The events of sign-in.
var (
	signedInEvent        = event.Declare[signedInData]("user.signed_in", audience, "A person signed in.")
	signedOutEvent       = event.Declare[event.None]("user.signed_out", audience, "A person ended a browser session.")
	reauthenticatedEvent = event.Declare[event.None]("user.reauthenticated", audience, "A person proved again who they are.")
	passwordSetEvent     = event.Declare[passwordSetData]("user.password_set", audience, "A person set their password; their other "+
		"browser sessions ended.")
	passwordResetEvent = event.Declare[event.None]("user.password_reset", audience, "The password of a person was replaced by a "+
		"one-time link; their browser sessions ended.")
	passwordLinkEvent = event.Declare[event.None]("user.password_link_made", audience, "An operator made a one-time link that sets a "+
		"new password of a person.")
	guessedEvent = event.Declare[guessedData]("user.sign_in_guessed", audience, "Somebody tried many wrong passwords or "+
		"codes of a person.")
)
