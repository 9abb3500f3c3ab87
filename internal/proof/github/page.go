package github

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/lazy"
)

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Parse(`
{{define "register"}}<!doctype html><title>Register GitHub App</title>
<h1>Create GitHub App</h1>
<form method="post">
<input type="hidden" name="manifest" value="{{.Manifest}}"><input type="hidden" name="confirmed" value="yes">
<button>Create GitHub App</button>
</form>{{end}}
{{define "install"}}<!doctype html><title>Install {{.App}}</title>
<h1>Install {{.App}}</h1>
{{range .Accounts}}<form method="post">
<input type="hidden" name="account" value="{{.}}"><button>Install on {{.}}</button>
</form>
{{end}}{{end}}`))
})

// serveManifest is the page to which a program has a browser post the form with a
// manifest: below "settings" of a person or of an organisation. The page asks the person,
// whose answer is the same form with the member confirmed.
func (s *Server) serveManifest(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "Send a manifest.", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	text := r.PostFormValue("manifest")
	if r.PostFormValue("confirmed") == "" {
		page(w, "register", map[string]any{"Manifest": text})
		return
	}
	to, err := s.Confirm(r.URL.Path, r.URL.Query().Get("state"), text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	http.Redirect(w, r, to, http.StatusFound)
}

func page(w http.ResponseWriter, name string, data map[string]any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pages().ExecuteTemplate(w, name, data) // it fails if the browser is gone
}

var installPath = lazy.New(`^/(apps|github-apps)/([^/]+)/installations/new$`)

// appsPath is below which the pages of Apps are. An Enterprise Server has them elsewhere
// than github.com.
func (s *Server) appsPath() string {
	if s.o.Enterprise != "" {
		return "github-apps"
	}
	return "apps"
}

// serveInstall is the page on which people install an App. It asks into which account;
// the answer names the account, and may name repositories, of which there are otherwise
// all. The browser then goes to the App's setup address with the state that it came with.
func (s *Server) serveInstall(w http.ResponseWriter, r *http.Request) {
	at := installPath.FindStringSubmatch(r.URL.Path)
	app, accounts := s.appBySlug(at[2])
	if app == nil || at[1] != s.appsPath() {
		http.Error(w, "There is no such App.", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		page(w, "install", map[string]any{"App": app.Slug, "Accounts": accounts})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if !slices.Contains(accounts, r.PostFormValue("account")) {
		http.Error(w, "There is no such account.", http.StatusUnprocessableEntity)
		return
	}
	var repos []*Repo
	for _, full := range r.PostForm["repository"] {
		if repo := s.RepoByName(full); repo != nil {
			repos = append(repos, repo)
		}
	}
	i := app.Install(s.Account(r.PostFormValue("account")), repos...)
	to := app.Redirect(i, "install")
	if to == "" {
		fmt.Fprintln(w, "The App is installed.")
		return
	}
	if state := r.URL.Query().Get("state"); state != "" {
		to += "&state=" + url.QueryEscape(state)
	}
	http.Redirect(w, r, to, http.StatusFound)
}

// appBySlug returns an App, and the names of the people and organisations.
func (s *Server) appBySlug(slug string) (app *App, accounts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.apps {
		if a.Slug == slug {
			app = a
		}
	}
	for _, a := range s.accounts {
		if a.Kind != "Bot" {
			accounts = append(accounts, a.Login)
		}
	}
	slices.Sort(accounts)
	return app, accounts
}

// Account returns a person or organisation that there is, or nil.
func (s *Server) Account(login string) *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts[strings.ToLower(login)]
}

// RepoByName returns a repository by its present name, or nil.
func (s *Server) RepoByName(full string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName(full)
}
