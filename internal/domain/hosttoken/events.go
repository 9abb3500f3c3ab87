package hosttoken

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about tokens and bindings.
var audience = event.Audience(policy.ReadAccount)

// The data of events. None holds a token, or a part of one.
type (
	setData struct {
		Host  string `json:"host" doc:"the code host that the token is for"`
		Login string `json:"login" doc:"whose it is there"`
	}
	clearedData struct {
		Host string `json:"host" doc:"the code host that the token was for"`
		Why  string `json:"why" enum:"asked,left" doc:"asked: its owner had it forgotten; left: the owner is not a member any more"`
	}
	refusedData struct {
		Host  string `json:"host" doc:"the code host that refused"`
		Token bool   `json:"token" doc:"true: it refuses the token; false: it refuses the repository to the token"`
	}
	boundData struct {
		Repo string `json:"repo" doc:"the repository, owner/name"`
	}
)

// The events of tokens and bindings. The object of an event is the user.
var (
	SetEvent     = event.Declare[setData]("self.host_token_set", audience, "A person stored their token of a code host.")
	clearedEvent = event.Declare[clearedData]("self.host_token_cleared", audience, "The token of a person, and its bindings, were forgotten.")
	RefusedEvent = event.Declare[refusedData]("self.host_token_refused", audience,
		"A code host refused the token of a person, or a repository to it.")
	boundEvent = event.Declare[boundData]("self.repo_bound", audience, "A person drives a repository with their own token from now on.")
	freedEvent = event.Declare[boundData]("self.repo_unbound", audience, "A person no longer drives a repository with their own token.")
)
