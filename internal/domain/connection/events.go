package connection

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

var audience = event.Audience(policy.ReadRepos)

// The data of events.
type (
	connectedData struct {
		App   string `json:"app" doc:"the name of the App at the host"`
		Host  string `json:"host" doc:"the code host"`
		Owner string `json:"owner" doc:"login of the App's owner at the host"`
	}
	installedData struct {
		Host        string            `json:"host" doc:"the code host"`
		Owner       string            `json:"owner" doc:"login at the host of who installed the App"`
		Permissions map[string]string `json:"permissions" doc:"what was granted, as the host calls it"`
	}
	endedData struct {
		Host  string `json:"host" doc:"the code host"`
		Owner string `json:"owner" doc:"login at the host of who had installed the App"`
		Why   string `json:"why" enum:"removed,suspended" doc:"removed: for good; suspended: until it is lifted"`
	}
)

// The events of connections and installations.
var (
	connectedEvent = event.Declare[connectedData]("code_host.connected", audience, "The server became an App of a code host.")
	installedEvent = event.Declare[installedData]("code_host.installed", audience, "The App was installed, or its permissions changed.")
	endedEvent     = event.Declare[endedData]("code_host.uninstalled", audience, "An installation of the App was removed or suspended.")
)
