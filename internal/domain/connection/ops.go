package connection

import (
	"context"
	"encoding/json"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

const group = "Code hosts"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	operator := policy.Require(policy.AdminReadPlat)
	return []op.Op{
		op.New(op.Row{
			ID: "code_host.list", Method: "GET", Path: "/v1/admin/code-hosts", Group: group, Rule: operator,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The code hosts that this server is connected to, and who has installed its App there",
			Doc:     "The built-in host is not among them.",
		}, s.list),
		op.New(op.Row{
			ID: "code_host.setup_page", Method: "GET", Path: "/gh/setup", Group: group, Rule: operator.OfSession(),
			Summary: "The page on which an operator begins to connect GitHub",
			Doc:     "Explains each permission that the App asks for. Nothing is stored.",
		}, s.setupPage),
		op.New(op.Row{
			ID: "code_host.setup_begin", Method: "POST", Path: "/gh/setup", Group: group, Rule: operator.OfSession(), Form: true,
			Again:   s.again,
			Summary: "Begin to connect GitHub",
			Doc:     "Answers a page that leads to GitHub, which makes the App and sends the browser back to /gh/created within an hour.",
		}, s.setupBegin),
		op.New(op.Row{
			ID: "code_host.setup_end", Method: "GET", Path: "/gh/created", Group: group, Rule: operator.OfSession(), NoStore: true,
			Refuses: []op.Refusal{{Status: 400, Slug: "setup-unknown"}, {Status: 503, Slug: "setup-refused"}},
			Summary: "GitHub sends the browser of a set-up back here",
			Doc: "Exchanges the code for the App's credentials, once, seals them, and connects the host. Only the operator who " +
				"began the set-up can end it.",
		}, s.setupEnd),
	}
}

// Connected is a code host as operators see it.
type Connected struct {
	_             struct{}         `doc:"A code host that the server is connected to." schema:"CodeHost"`
	Name          string           `json:"name" example:"github:github.com" doc:"its name, as repositories have it"`
	Address       string           `json:"address" format:"uri" doc:"where people find it"`
	App           string           `json:"app" example:"yardmaster-acme" doc:"name of the App there"`
	AppID         string           `json:"app_id" doc:"id of the App there"`
	Owner         string           `json:"owner" doc:"login of the App's owner"`
	AccountID     string           `json:"account_id" format:"uuid" doc:"the account that the owner's repositories belong to"`
	Switches      Switches         `json:"switches" doc:"permissions that were asked for besides"`
	Installations []InstallationOf `json:"installations" doc:"oldest first, those that were removed included"`
	CreatedAt     time.Time        `json:"created_at" doc:"when it was connected"`
	CreatedBy     string           `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who connected it"`
}

// InstallationOf is an installation as operators see it.
type InstallationOf struct {
	_           struct{}          `doc:"An installation of the App." schema:"CodeHostInstallation"`
	ID          string            `json:"id" doc:"id at the host"`
	Owner       string            `json:"owner" doc:"login of who installed the App"`
	AccountID   string            `json:"account_id" format:"uuid" doc:"the account that the repositories belong to"`
	Permissions map[string]string `json:"permissions" example:"{\"contents\": \"write\"}" doc:"what was granted, as the host calls it"`
	SuspendedAt *time.Time        `json:"suspended_at" example:"null" doc:"since when it is suspended; null: it is not"`
	GoneAt      *time.Time        `json:"gone_at" example:"null" doc:"when it was removed; null: it is there"`
}

// ConnectedHosts is the answer of code_host.list.
type ConnectedHosts struct {
	_          struct{}    `doc:"The code hosts besides the built-in one." schema:"CodeHosts"`
	Data       []Connected `json:"data" doc:"by name"`
	NextCursor *string     `json:"next_cursor" doc:"send it back as cursor for the page after this one; null: nothing follows"`
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (ConnectedHosts, error) {
	var rows []row
	var installed []installationRow
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "code_host.list"}, func(tx *db.Tx) (err error) {
		if rows, err = all.All(tx); err == nil {
			installed, err = installationsOf.All(tx)
		}
		return err
	})
	page := op.Cut(in.PageIn, rows, func(r row) []string { return []string{r.Name} })
	out := ConnectedHosts{Data: []Connected{}, NextCursor: page.NextCursor}
	for _, r := range page.Data {
		c := Connected{
			Name: r.Name, Address: r.Address, App: r.Slug, AppID: r.AppID, Owner: r.OwnerLogin, AccountID: r.AccountID,
			CreatedAt: r.CreatedAt, CreatedBy: r.CreatedBy, Installations: []InstallationOf{},
		}
		if err := json.Unmarshal([]byte(r.Switches), &c.Switches); err != nil {
			return out, err
		}
		for _, i := range installed {
			if i.Host == r.Name {
				c.Installations = append(c.Installations, InstallationOf{
					ID: i.ID, Owner: i.OwnerLogin, AccountID: i.AccountID, Permissions: i.Permissions.V,
					SuspendedAt: i.SuspendedAt, GoneAt: i.GoneAt,
				})
			}
		}
		out.Data = append(out.Data, c)
	}
	return out, err
}
