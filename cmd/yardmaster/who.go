package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"

	"yardmaster/internal/client"
)

// userNamed is how the API names somebody: user:<id>.
var userNamed = regexp.MustCompile(`"user:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"`)

// withLogins has people see the logins of the members whom an answer names by their ids.
// Whoever is no member any more, or may not be listed by the caller, is named by the short id.
func withLogins(ctx context.Context, c *client.Client, people func(io.Writer, []byte) error) func(io.Writer, []byte) error {
	var logins map[string]string // read once, however often a list is shown anew
	return func(w io.Writer, b []byte) error {
		if userNamed.Match(b) {
			if logins == nil {
				logins = roster(ctx, c)
			}
			b = userNamed.ReplaceAllFunc(b, func(quoted []byte) []byte {
				id := string(userNamed.FindSubmatch(quoted)[1])
				name, known := logins[id]
				if !known {
					name = "user:" + short(id)
				}
				text, err := json.Marshal(name)
				if err != nil {
					return quoted
				}
				return text
			})
		}
		return people(w, b)
	}
}

// roster is the login of each member of the account by their id; nobody if that cannot be read.
func roster(ctx context.Context, c *client.Client) map[string]string {
	var all struct {
		Data []struct {
			UserID string `json:"user_id"`
			Login  string `json:"login"`
		} `json:"data"`
	}
	logins := map[string]string{}
	if err := c.Call(ctx, http.MethodGet, "/v1/org/members", nil, &all); err != nil {
		return logins
	}
	for _, m := range all.Data {
		logins[m.UserID] = m.Login
	}
	return logins
}
