package cli

import (
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// What is set now and then is sent as the server takes it, and comes back with the command that is printed.
func TestWhatIsSetNowAndThen(t *testing.T) {
	t.Parallel()
	box := "/v1/runners/" + someID
	f := newFake(t, map[string]string{
		"GET " + box: `{"id": "` + someID + `", "briefing": "The cache is here."}`, "PUT " + box + "/prompt": `{}`,
		"PUT /v1/prompt-vars/account/team": `{}`, "DELETE /v1/prompt-vars/account/team": `{"deleted": false}`,
		"POST /v1/me/repo-bindings": `{}`, "DELETE /v1/me/repo-bindings/acme/web": `{}`, "PUT /v1/plans/file-switch": `{}`,
		"POST /v1/email-routes": `{"id": "` + otherID + `"}`, "DELETE /v1/email-routes/" + otherID: `{}`,
		"GET /v1/repos/acme/web": `{"full_name": "acme/web"}`, "GET /v1/oss/verification": `{"application": null}`,
		"POST /v1/oss/verification": `{"application": {"id": "` + otherID + `", "state": "pending"}}`,
	})
	p := f.person(t)
	again := "Undo: yardmaster box prompt " + someID + " 'The cache is here.'\n"
	for _, c := range []struct{ line, shows, sent string }{
		{"box prompt " + someID + " Be brief.", again, `PUT ` + box + `/prompt {"prompt":"Be brief."}`},
		{"box unprompt " + someID, again, `PUT ` + box + `/prompt {"prompt":null}`},
		{"prompt variables set team The Platform --scope account", "team is set.", `PUT /v1/prompt-vars/account/team {"value":"The Platform"}`},
		{"github bind acme/web", "Undo: yardmaster github unbind acme/web", `POST /v1/me/repo-bindings {"repo":"acme/web"}`},
		{"github unbind acme/web", "Undo: yardmaster github bind acme/web", `DELETE /v1/me/repo-bindings/acme/web`},
		{"plan filing off", "Undo: yardmaster plan filing on", `PUT /v1/plans/file-switch {"enabled":false}`},
		{"notification routes create team@example.com --kinds spending,plan", "team@example.com is asked",
			`POST /v1/email-routes {"address":"team@example.com","kinds":["spending","plan"]}`},
		{"account open-source", "has not applied.\nyardmaster account open-source apply makes one", "GET /v1/oss/verification"},
		{"account open-source apply --project-url https://example.com/web --statement 'Apache 2'", "waits for an operator",
			`POST /v1/oss/verification {"project_url":"https://example.com/web","statement":"Apache 2"}`},
		{"notification routes delete @last", "Nothing more", `DELETE /v1/email-routes/` + otherID},
	} {
		if p.holds(c.line, 0, c.shows); !f.was(c.sent) {
			t.Errorf("%s sends %s", c.line, strings.Join(f.calls[max(0, len(f.calls)-2):], "; "))
		}
	}
	p.holds("prompt variables delete team --scope account", exit.CodeNotFound, `there is no variable "team"`)
}
