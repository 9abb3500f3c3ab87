package cli

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"yardmaster/internal/box"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/machine"
	"yardmaster/internal/client"
)

// lookAtBox checks what the box with an identity needs of its server, with an enabled
// repository of the login if it is one of the same server.
func lookAtBox(ctx context.Context, id box.Identity, l client.Login, say func(bool, string, string)) {
	var repo box.Remote
	if l.Token != "" && l.URL == id.ServerURL {
		var known capability.Rows[struct {
			CloneURL string `json:"clone_url"`
		}]
		c := &client.Client{URL: l.URL, Token: l.Token}
		err := c.Call(ctx, http.MethodGet, "/v1/repos?per_page=1&filter=enabled%3Atrue", nil, &known)
		var refused *client.Problem
		if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusForbidden) { // a login may read none
			say(false, "box, git: the repositories of your login cannot be listed: "+err.Error(), next(err))
		}
		// The token is for the server alone that it is of.
		if len(known.Data) > 0 && strings.HasPrefix(known.Data[0].CloneURL, l.URL+"/") {
			repo = box.Remote{URL: known.Data[0].CloneURL, Token: l.Token}
		}
	}
	for _, c := range box.Examine(ctx, id, repo) {
		say(c.OK, c.What, c.Then)
	}
}

// boxHere reads the identity of the box in a folder. It answers none if there is no box,
// unless the folder was named.
func boxHere(data string, named bool) (id box.Identity, ok bool, err error) {
	id, err = box.LoadIdentity(data)
	if errors.Is(err, box.ErrNotEnrolled) && !named {
		return id, false, nil
	}
	return id, err == nil, machine.NoBox(err, data)
}
