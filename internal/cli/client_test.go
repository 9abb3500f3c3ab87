package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/signin"
)

// A new password is asked for twice where it is typed unseen, and the prompt states
// its least length.
func TestChoosePassword(t *testing.T) {
	for _, c := range []struct {
		twice   bool
		answers []string
		want    string // or what is wrong
	}{
		{true, []string{"long enough", "long enough"}, "long enough"},
		{true, []string{"long enough", "long enouhg"}, "not the same"},
		{true, []string{"short"}, "fewer than 10"},
		{false, []string{"long enough"}, "long enough"},
		{false, []string{"höflichkeit"}, "höflichkeit"},
		{false, []string{"äöüäöü"}, "fewer than 10"},
	} {
		var prompts []string
		got, err := signin.Choose(c.twice, func(prompt string) (string, error) {
			if prompts = append(prompts, prompt); len(prompts) > len(c.answers) {
				return "", errors.New("asked once more")
			}
			return c.answers[len(prompts)-1], nil
		})
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || len(prompts) != len(c.answers) || !strings.Contains(prompts[0], "10 characters") {
			t.Errorf("%+v: %q, asked %q", c, got, prompts)
		}
	}
}

// Setup at the wrong server names the server that was asked, also if that is another
// program.
func TestSetupOfAnotherServer(t *testing.T) {
	for name, answer := range map[string]string{
		"ours":      `{"type": "http://x/problems/not-found", "status": 404, "detail": "There is no such setup address."}`,
		"a foreign": "404 page not found",
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/setup/dev_setup_x" {
				t.Errorf("%s was asked for", r.URL.Path)
			}
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(answer))
		}))
		defer h.Close()
		code, out, errs := yardmasterTold(t, "correct horse\n", h.URL, "setup", "--token", "dev_setup_x", "--login", "ada",
			"--email", "ada@example.com", "--account", "acme")
		if code != exit.CodeFailed || out != "" || !strings.Contains(errs, h.URL+", which was asked") ||
			!strings.Contains(errs, "--url names another") {
			t.Errorf("%s server: %d %q\n%s", name, code, out, errs)
		}
	}
}

// someID is an id that nothing has to be asked about.
const someID = "12345678-1234-4234-8234-123456789abc"

// The refusal of a redispatch ends with the command that helps.
func TestRefusalNamesTheCommand(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		w.Write([]byte(`{"type": "http://x/problems/already_shipped", "status": 409, "detail": "It has shipped.", "clear": {"capability": "pr.rearm_babysit", "args": {"id": "p1"}}}`))
	}))
	defer h.Close()
	code, _, errs := yardmasterAt(t, h.URL, "task", "redispatch", someID)
	if code != exit.CodeRefused || !strings.Contains(errs, "It has shipped.") ||
		!strings.Contains(errs, `yardmaster pr rearm p1 "…"`) {
		t.Errorf("%d %s", code, errs)
	}
}

// The refusal of a call of operators says which token is wanted, and no other does.
func TestRefusalNamesTheOperatorToken(t *testing.T) {
	for scope, want := range map[string]bool{"admin:accounts": true, "admin:read:platform": false, "write:prs": false} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			w.Write([]byte(`{"type": "http://x/problems/missing-scope", "status": 403, "detail": "It lacks one.", "missing_scopes": ["` + scope + `"]}`))
		}))
		defer h.Close()
		code, _, errs := yardmasterAt(t, h.URL, "github", "redeliver", "g1")
		if code != exit.CodeRefused || strings.Contains(errs, "yardmaster operator token --login YOU --scopes "+scope) != want {
			t.Errorf("%s: %d %s", scope, code, errs)
		}
	}
}

// Digits of a commit are resolved once; later calls name the full commit.
func TestDiffSinceFewDigits(t *testing.T) {
	const whole = "0123456789abcdef0123456789abcdef01234567"
	var asked []string
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("since_sha"))
		w.Write([]byte(`{"from_sha": "` + whole + `", "files": [{"path": "a", "kind": "modified"}]}`))
	}))
	defer h.Close()
	if code, _, errs := yardmasterAt(t, h.URL, "pr", "diff", "--since", whole[:10], someID); code != 0 ||
		strings.Join(asked, " ") != whole[:10]+" "+whole {
		t.Errorf("%d %s; asked %q", code, errs, asked)
	}
}

// The list of a user who has merged everything does not say that there is nothing
// yet.
func TestNothingWaits(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.Write([]byte(`{"data": [], "next_cursor": null}`))
	}))
	defer h.Close()
	code, out, errs := yardmasterAt(t, h.URL, "pr", "list", "--waiting")
	if code != 0 || out != "" || !strings.HasPrefix(errs, "Nothing waits for a yes or no.") {
		t.Errorf("%d %q\n%s", code, out, errs)
	}
}

// The scripted model needs a scenario file: key add says so for this provider only.
func TestScriptedKeyNamesTheScenario(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		w.Write([]byte(`{"id": "k1", "masked": "", "model": null, "templates": []}`))
	}))
	defer h.Close()
	for provider, want := range map[string]bool{"scripted": true, "openai": false} {
		code, out, errs := yardmasterTold(t, "sk-x\n", h.URL, "key", "add", "--provider", provider)
		if code != 0 || strings.Contains(out, "serve --scenario FILE") != want {
			t.Errorf("%s: %d %q\n%s", provider, code, out, errs)
		}
	}
}
