package hosttoken

import (
	"context"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Personal settings"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	mine := policy.Require(policy.SelfKeys).OfUser()
	return []op.Op{
		op.New(op.Row{
			ID: "self.github_token_get", Method: "GET", Path: "/v1/me/github-token", Group: group, Rule: mine,
			Summary: "The state of the caller's token at a code host",
			Doc:     "Whether there is one, whose it is there, when it ends, and what the host said of repositories. The token itself is never answered.",
		}, s.get),
		op.New(op.Row{
			ID: "self.github_token_set", Method: "POST", Path: "/v1/me/github-token", Group: group, Rule: mine,
			Refuses: []op.Refusal{{Status: 400, Slug: "token-refused"}, {Status: 409, Slug: "no-code-host"},
				{Status: 503, Slug: "code-host-unavailable"}},
			Summary: "Store the caller's token of a code host, or replace it",
			Doc: "The host is asked whose it is before it is sealed and stored, for this account alone. By itself it changes nothing: " +
				"bind the repositories that are to be driven with it. What is bound already goes on with the new one.",
		}, s.set),
		op.New(op.Row{
			ID: "self.github_token_clear", Method: "DELETE", Path: "/v1/me/github-token", Group: group, Rule: mine,
			Summary: "Forget the caller's token and all of its bindings; again is no error",
			Doc:     "Git of the caller's runs goes with the App's credential from now on. At the host the token stays good until it is revoked there.",
		}, s.clear),
		op.New(op.Row{
			ID: "self.repo_binding_list", Method: "GET", Path: "/v1/me/repo-bindings", Group: group, Rule: mine,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The repositories that the caller drives with their own token, oldest binding first",
			Doc:     "Shows for each whether it works.",
		}, s.list),
		op.New(op.Row{
			ID: "self.repo_binding_set", Method: "POST", Path: "/v1/me/repo-bindings", Group: group, Rule: mine,
			Refuses: []op.Refusal{
				{Status: 400, Slug: "token-refused"}, {Status: 404, Slug: "not-found"}, {Status: 409, Slug: "no-host-token"},
				{Status: 409, Slug: "no-code-host"}, {Status: 409, Slug: "token-replaced"}, {Status: 422, Slug: "repo-not-granted"},
				{Status: 422, Slug: "too-many-bindings"}, {Status: 503, Slug: "code-host-unavailable"},
			},
			Summary: "Drive a repository with the caller's own token",
			Doc: "The host must say that the token may push there. From then on git of the tasks that the caller asked for, and of the caller, " +
				"has the caller's token at the host. If the host refuses it later, that git is refused; the App's credential does not take its place.",
		}, s.bind),
		op.New(op.Row{
			ID: "self.repo_binding_clear", Method: "DELETE", Path: "/v1/me/repo-bindings/{owner}/{repo}", Group: group, Rule: mine,
			Summary: "Stop driving a repository with the caller's own token; again is no error",
			Doc:     "Git of the caller's runs there goes with the App's credential from now on. 404 for a repository that the account does not have.",
		}, s.unbind),
	}
}

// shown is a token as its owner sees it.
func (s *Service) shown(tx *db.Tx, t row, connected bool) (Token, error) {
	out := Token{State: StateNone, Grants: []Grant{}}
	if !connected {
		return out, nil
	}
	out = Token{
		Connected: true, State: State(t.state(tx.Now)), Host: &t.Host, Login: &t.Login, Masked: &t.Masked, ExpiresAt: t.ExpiresAt,
		CheckedAt: &t.CheckedAt, ConnectedAt: &t.CreatedAt, Grants: []Grant{},
	}
	var ids []string
	for _, g := range t.Grants.V {
		ids = append(ids, g.Repo)
	}
	names, err := s.names(tx, ids)
	for _, g := range t.Grants.V {
		if r, ok := names[g.Repo]; ok {
			out.Grants = append(out.Grants, Grant{Repo: r.At.String(), Push: g.Push, CheckedAt: g.At})
		}
	}
	return out, err
}

// names are the repositories of tx.Account by id.
func (s *Service) names(tx *db.Tx, ids []string) (map[string]Repo, error) {
	out := map[string]Repo{}
	if len(ids) == 0 {
		return out, nil
	}
	all, err := s.Repos.ByIDs(tx, ids)
	for _, r := range all {
		out[r.ID] = r
	}
	return out, err
}

func (s *Service) get(ctx context.Context, _ op.None) (out Token, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		t, ok, err := byUser.Maybe(tx, tx.Account, policy.From(ctx).UserID)
		if err != nil {
			return err
		}
		out, err = s.shown(tx, t, ok)
		return err
	})
	return out, err
}

type setIn struct {
	Token string `json:"token" minLength:"10" maxLength:"1000" example:"github_pat_11EXAMPLE" doc:"the token, a fine-grained one best; it is sealed and never shown again"`
	Host  string `json:"host,omitempty" maxLength:"200" example:"builtin" doc:"the code host that it is for; left out: the one that the server is connected to"`
}

// host is the code host that a token is for.
func (s *Service) host(name string) (string, error) {
	all := s.Hosts.WithPeople()
	switch {
	case len(all) == 0:
		return "", noHost()
	case name == "" && len(all) == 1:
		return all[0], nil
	case name == "":
		return "", fault.Field("host", "is required: the server is connected to "+strings.Join(all, ", "))
	case !slices.Contains(all, name):
		return "", fault.Field("host", "must be one of "+strings.Join(all, ", "))
	}
	return name, nil
}

func (s *Service) set(ctx context.Context, in setIn) (out Token, err error) {
	in.Token = strings.TrimSpace(in.Token)
	if len(in.Token) < 10 {
		return out, fault.Field("token", "must have at least 10 characters")
	}
	host, err := s.host(in.Host)
	if err != nil {
		return out, err
	}
	known, err := s.check(ctx, host, in.Token, codehost.Repo{})
	if err != nil {
		return out, err
	}
	var newest []Repo
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		newest, err = s.Repos.Newest(tx, host, mostGrants)
		return err
	}); err != nil {
		return out, err
	}
	may := make([]codehost.PersonToken, len(newest))
	for i, r := range newest {
		if may[i], err = s.check(ctx, host, in.Token, r.At); err != nil {
			return out, err
		}
	}
	user, tokenID := policy.From(ctx).UserID, id.New()
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		grants := []granted{}
		for i, p := range may {
			if p.Read {
				grants = append(grants, granted{Repo: newest[i].ID, Push: p.Push, At: tx.Now})
			}
		}
		if _, err := put.Exec(tx, putArgs{
			ID: tokenID, AccountID: tx.Account, UserID: user, Host: host, Login: known.User.Login, HostUserID: known.User.ID,
			Masked: mask(in.Token),
			Sealed: s.Ring.Seal(purpose(tokenID), []byte(in.Token)), Grants: db.JSON[[]granted]{V: grants}, ExpiresAt: known.ExpiresAt,
			Now: tx.Now,
		}); err != nil {
			return err
		}
		if _, err := rebind.Exec(tx, tx.Account, user, tokenID); err != nil {
			return err
		}
		t, err := byUser.One(tx, tx.Account, user)
		if err != nil {
			return err
		}
		if out, err = s.shown(tx, t, true); err != nil {
			return err
		}
		return SetEvent.Record(tx, event.Subject{ID: user}, setData{Host: host, Login: t.Login})
	})
	return out, err
}

// Cleared is the answer of self.github_token_clear.
type Cleared struct {
	_       struct{} `doc:"What self.github_token_clear did." schema:"ClearedHostToken"`
	Cleared bool     `json:"cleared" doc:"false: there was none"`
}

func (s *Service) clear(ctx context.Context, _ op.None) (out Cleared, err error) {
	user := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, _, err := byUser.Maybe(tx, tx.Account, user)
		if err != nil {
			return err
		}
		gone, err := forget(tx, user)
		out = Cleared{Cleared: gone}
		if err != nil || !gone {
			return err
		}
		return clearedEvent.Record(tx, event.Subject{ID: user}, clearedData{Host: t.Host, Why: "asked"})
	})
	return out, err
}

func (b binding) wire(tx *db.Tx, r Repo, t row) Binding {
	out := Binding{Repo: r.At.String(), RepoID: r.ID, Host: r.At.Host, CheckedAt: b.CheckedAt, BoundAt: b.CreatedAt}
	var why string
	if out.State, why = b.why(t, tx.Now); why != "" {
		out.Reason = &why
	}
	return out
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Binding], err error) {
	user := policy.From(ctx).UserID
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		t, _, err := byUser.Maybe(tx, tx.Account, user)
		if err != nil {
			return err
		}
		all, err := boundOf.All(tx, tx.Account, user)
		if err != nil {
			return err
		}
		var ids []string
		for _, b := range all {
			ids = append(ids, b.RepoID)
		}
		names, err := s.names(tx, ids)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(b binding) bool { _, ok := names[b.RepoID]; return !ok })
		key := func(b binding) []string { return op.TimeKey(b.CreatedAt, b.RepoID) }
		out = op.ShowPage(in.PageIn, op.Rest(in.PageIn, all, key), key, func(b binding) Binding {
			return b.wire(tx, names[b.RepoID], t)
		})
		return nil
	})
	return out, err
}

type bindIn struct {
	Repo string `json:"repo" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"the repository, owner/name, at the code host of the token"`
}

func (s *Service) bind(ctx context.Context, in bindIn) (out Binding, err error) {
	owner, name, _ := strings.Cut(in.Repo, "/")
	user := policy.From(ctx).UserID
	var t row
	var r Repo
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		if t, ok, err = byUser.Maybe(tx, tx.Account, user); err == nil && !ok {
			err = fault.Reason("no-host-token", "You have stored no token of a code host. Store one with self.github_token_set first.")
		}
		if err != nil {
			return err
		}
		if r, ok, err = s.Repos.ByName(tx, t.Host, owner, name); err == nil && !ok {
			err = fault.Missing("repository")
		}
		return err
	})
	if err != nil {
		return out, err
	}
	token, err := s.Ring.Unseal(purpose(t.ID), t.Sealed)
	if err != nil {
		return out, err
	}
	may, err := s.check(ctx, t.Host, string(token), r.At)
	if err != nil {
		return out, err
	}
	if !may.Push {
		return out, fault.New(fault.Unprocessable, "repo-not-granted",
			"The code host does not let your token push to this repository. Grant it there: contents, read and write.")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		now, ok, err := byUser.ForUpdate().Maybe(tx, tx.Account, user)
		if err != nil {
			return err
		}
		if !ok || now.ID != t.ID {
			return fault.Reason("token-replaced", "The token was replaced meanwhile. Try again.")
		}
		_, was, err := boundTo.Maybe(tx, tx.Account, user, r.ID)
		if err != nil {
			return err
		}
		if all, err := boundOf.All(tx, tx.Account, user); err != nil {
			return err
		} else if !was && len(all) >= mostBindings {
			return fault.Newf(fault.Unprocessable, "too-many-bindings", "A person may bind %d repositories.", mostBindings)
		}
		grants := slices.DeleteFunc(slices.Clone(now.Grants.V), func(g granted) bool { return g.Repo == r.ID })
		grants = append(grants, granted{Repo: r.ID, Push: true, At: tx.Now})
		grants = grants[max(0, len(grants)-mostBindings):]
		if _, err := checked.Exec(tx, checkedArgs{
			AccountID: tx.Account, ID: t.ID, Login: may.User.Login, HostUserID: may.User.ID, Grants: db.JSON[[]granted]{V: grants},
			ExpiresAt: may.ExpiresAt, Now: tx.Now,
		}); err != nil {
			return err
		}
		args := bindArgs{AccountID: tx.Account, UserID: user, RepoID: r.ID, TokenID: t.ID, Now: tx.Now}
		if _, err := bind.Exec(tx, args); err != nil {
			return err
		}
		b, err := boundTo.One(tx, tx.Account, user, r.ID)
		if err != nil {
			return err
		}
		now.RefusedAt, now.ExpiresAt = nil, may.ExpiresAt
		out = b.wire(tx, r, now)
		return boundEvent.Record(tx, event.Subject{ID: user, RepoID: r.ID}, boundData{Repo: r.At.String()})
	})
	return out, err
}

type unbindIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
}

// Unbound is the answer of self.repo_binding_clear.
type Unbound struct {
	_       struct{} `doc:"What self.repo_binding_clear did." schema:"ClearedRepoBinding"`
	Cleared bool     `json:"cleared" doc:"false: the repository was not bound"`
}

func (s *Service) unbind(ctx context.Context, in unbindIn) (out Unbound, err error) {
	user := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, _, err := byUser.Maybe(tx, tx.Account, user)
		if err != nil {
			return err
		}
		r, ok, err := s.Repos.ByName(tx, t.Host, in.Owner, in.Repo) // without a token, at any host
		if err == nil && !ok {
			err = fault.Missing("repository")
		}
		if err != nil {
			return err
		}
		n, err := free.Exec(tx, tx.Account, user, r.ID)
		out = Unbound{Cleared: n > 0}
		if err != nil || n == 0 {
			return err
		}
		return freedEvent.Record(tx, event.Subject{ID: user, RepoID: r.ID}, boundData{Repo: r.At.String()})
	})
	return out, err
}
