package source

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/inbound"
	"yardmaster/internal/policy"
)

const group = "Sources"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadWebhooks), policy.Require(policy.WriteWebhooks)
	return append([]op.Op{
		op.RawAt[inboundIn](op.Row{
			ID: "inbound.source", Method: "POST", Path: "/v1/inbound/{sourceId}", Group: group, Rule: policy.Public(), MaxBody: maxBody,
			Status: 202, Also: []int{200},
			Refuses: []op.Refusal{{Status: 401, Slug: "bad-signature"}, {Status: 503, Slug: "busy"}},
			Takes:   Payload{}, Body: Receipt{},
			Summary: "A connected system delivers what has happened there",
			Doc: "Signed as its vendor signs, or as outbound webhooks of this server are. What the delivery wants becomes an ask before the " +
				"answer. A source may send 120 deliveries a minute. The same delivery twice is a noop; one that was dropped is looked at again.",
		}, s.receive),
		op.New(op.Row{ID: "integration.list", Method: "GET", Path: "/v1/integrations", Group: group, Rule: read,
			Paging:  &op.Paging{Full: true},
			Summary: "The account's sources, newest first",
			Doc:     "All at once. Secrets are not shown. What was disconnected is not listed."}, s.list),
		op.New(op.Row{ID: "integration.source_connect", Method: "POST", Path: "/v1/integrations", Group: group, Rule: write, Status: 201,
			NoStore: true,
			Refuses: []op.Refusal{{Status: 403, Slug: "missing-scope"}, {Status: 404, Slug: "not-found"},
				{Status: 409, Slug: "source-exists"},
				{Status: 409, Slug: "too-many-sources"}},
			Summary: "Connect a system whose deliveries become asks; its secret is shown once",
			Doc: "The answer has the address to which the system is to send, and the secret that is to sign what it sends. Sentry, Linear and " +
				"PagerDuty make the secret themselves, once they have the address: give it with integration.rotate. A delivery is bound to the " +
				"repository that projects has for its project, else to repo. Unless the source is trusted, which needs write:tasks, a person is " +
				"asked before any work begins on what it delivers."}, s.connect),
		op.New(op.Row{ID: "integration.get", Method: "GET", Path: "/v1/integrations/{id}", Group: group, Rule: read,
			Summary: "One source",
			Doc: "last_delivery_at and last_refused_at tell whether the other system sends, and signs with the secret that it was given. What it " +
				"sent is in integration.deliveries."}, s.get),
		op.New(op.Row{ID: "integration.update", Method: "PATCH", Path: "/v1/integrations/{id}", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 403, Slug: "missing-scope"}, {Status: 409, Slug: "source-exists"}},
			Summary: "Change what is done with the deliveries of a source",
			Doc: "What is left out stays. An empty text takes a value away; projects replaces all that there were. A source that is trusted " +
				"afterwards needs write:tasks."}, s.update),
		op.New(op.Row{ID: "integration.rotate", Method: "POST", Path: "/v1/integrations/{id}/rotate", Group: group, Rule: write,
			Status:  201,
			NoStore: true,
			Refuses: []op.Refusal{{Status: 403, Slug: "missing-scope"}},
			Summary: "Give a source another secret; the one before it is good for 24 hours more",
			Doc: "Without secret one is made, and shown once. With at_once the one before it ends now, as is due if it has leaked. A source " +
				"that awaits its secret is ready afterwards. One that is trusted needs write:tasks."}, s.rotate),
		op.New(op.Row{ID: "integration.disconnect", Method: "DELETE", Path: "/v1/integrations/{id}", Group: group, Rule: write,
			Summary: "Disconnect a system; again is no error",
			Doc:     "Its secret and its ledger are forgotten. The asks that it led to stay."}, s.disconnect),
		op.New(op.Row{ID: "integration.deliveries", Method: "GET", Path: "/v1/integrations/{id}/deliveries", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{"outcome": {Filed, Noop, Dropped, Ack}}},
			Summary: "The last 200 deliveries of a source, newest first, for as long as they are kept: 30 days unless the operator says otherwise",
			Doc: "Only what was signed is in it: integration.get says when the source was last sent what was not. Texts are shown without " +
				"what looks like a secret."}, s.deliveries),
	}, s.mappingOps()...)
}

type inboundIn struct {
	SourceID string `json:"sourceId" format:"uuid" doc:"id of the source"`
}

// Payload is the body of a delivery, as far as all systems have it.
type Payload struct {
	_     struct{}       `doc:"The body of a delivery: an object whose members depend on the system." schema:"SourcePayload"`
	Title string         `json:"title,omitempty" example:"Disk of db-1 is nearly full" doc:"what a system of the kind generic wants, unless the mapping of its source says otherwise"`
	More  map[string]any `json:",embed"`
}

// Source is a source as the API shows it.
type Source struct {
	_              struct{}          `doc:"A system whose deliveries become asks."`
	ID             string            `json:"id" format:"uuid" doc:"id of the source"`
	Name           string            `json:"name" example:"errors" doc:"its name, which no other source of the account has"`
	Kind           Vendor            `json:"kind" example:"sentry" doc:"what kind of system it is"`
	URL            string            `json:"url" format:"uri" example:"https://yard.example.com/v1/inbound/0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"where the system is to send"`
	State          State             `json:"state" example:"ready" doc:"awaiting_secret: the system makes the secret, which is yet to be given with integration.rotate; all it sends is refused"`
	Repo           *string           `json:"repo" example:"acme/web" doc:"repository of deliveries whose project is not in projects; null: none"`
	Projects       map[string]string `json:"projects" example:"{\"front-end\":\"acme/web\"}" doc:"repositories by the names of projects there"`
	Label          *string           `json:"label" example:"null" doc:"only issues with this label become asks; null: all do"`
	Bot            *string           `json:"bot" example:"null" doc:"name of an account there whose deliveries are own_echo; null: nobody's are"`
	Trusted        bool              `json:"trusted" doc:"whether work may begin on what it delivers without a person"`
	Mapping        *inbound.Mapping  `json:"mapping" example:"null" doc:"of the kind generic: where a delivery has what is wanted; null of other kinds"`
	OverlapUntil   *time.Time        `json:"overlap_until" example:"null" doc:"until when the secret before the last rotation is good; null: it is not"`
	CreatedBy      string            `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who connected it"`
	CreatedAt      time.Time         `json:"created_at" doc:"when it was connected"`
	LastDeliveryAt *time.Time        `json:"last_delivery_at" doc:"the last delivery that was signed; null: none yet"`
	LastRefusedAt  *time.Time        `json:"last_refused_at" doc:"the last delivery that was not signed with its secret, to the minute; null: none yet"`
}

// show makes sources as the API shows them, in their order.
func (s *Service) show(tx *db.Tx, rows ...row) ([]Source, error) {
	var ids []string
	for _, r := range rows {
		ids = append(ids, slices.Collect(maps.Values(r.Projects.V))...)
		if r.RepoID != nil {
			ids = append(ids, *r.RepoID)
		}
	}
	names, err := names(tx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]Source, len(rows))
	for i, r := range rows {
		o := Source{
			ID: r.ID, Name: r.Name, Kind: Vendor(r.Kind), URL: s.BaseURL + "/v1/inbound/" + r.ID, State: Ready,
			Projects: map[string]string{}, Label: db.NullText(r.Label), Bot: db.NullText(r.Bot), Trusted: r.Trusted,
			CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt,
			LastDeliveryAt: r.LastDeliveryAt, LastRefusedAt: r.LastRefusedAt,
		}
		if r.Sealed == "" {
			o.State = AwaitingSecret
		}
		if r.PreviousUntil != nil && tx.Now.Before(*r.PreviousUntil) {
			o.OverlapUntil = r.PreviousUntil
		}
		if r.RepoID != nil {
			o.Repo = db.NullText(names[*r.RepoID])
		}
		for project, repoID := range r.Projects.V {
			if name := names[repoID]; name != "" {
				o.Projects[project] = name
			}
		}
		if r.Kind == inbound.Generic {
			o.Mapping = &rows[i].Mapping.V
		}
		out[i] = o
	}
	return out, nil
}

// names are the names of repositories of tx.Account by id.
func names(tx *db.Tx, ids []string) (map[string]string, error) {
	out := map[string]string{}
	if len(ids) == 0 {
		return out, nil
	}
	slices.Sort(ids)
	all, err := repo.ByIDsAnywhere(tx, slices.Compact(ids))
	for _, r := range all {
		if r.AccountID == tx.Account {
			out[r.ID] = r.FullName()
		}
	}
	return out, err
}

func (s *Service) list(ctx context.Context, _ op.None) (op.Page[Source], error) {
	var all []Source
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := living.All(tx, tx.Account)
		if err != nil {
			return err
		}
		all, err = s.show(tx, rows...)
		return err
	})
	return op.Whole(all), err
}

type connectIn struct {
	Name     string            `json:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" says:"must be at most 100 letters, digits, points, hyphens and underscores, and begin with a letter or digit" example:"errors" doc:"name of the source"`
	Kind     Vendor            `json:"kind" example:"sentry" doc:"what kind of system it is"`
	Repo     string            `json:"repo,omitempty" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"owner/name; repository of deliveries whose project is not in projects"`
	Projects map[string]string `json:"projects,omitempty" maxItems:"200" maxLength:"200" example:"{\"front-end\":\"acme/web\"}" doc:"repositories by the names of projects there: of a code host the path of the repository, of Sentry the slug or id, of Linear the key or name of the team or the name of the project, of PagerDuty the name or id of the service"`
	Label    string            `json:"label,omitempty" maxLength:"100" example:"agents" doc:"only issues with this label become asks; of code hosts and Linear"`
	Bot      string            `json:"bot,omitempty" maxLength:"200" example:"yard-bot" doc:"login, name or id of an account there that your automation uses: what it does files no ask"`
	Trusted  bool              `json:"trusted,omitempty" example:"false" doc:"let work begin on what it delivers without a person; needs write:tasks. Everybody who can write there can then have work done"`
	Secret   string            `json:"secret,omitempty" minLength:"16" maxLength:"200" example:"whsec_c2VjcmV0IG9mIHRoZSBvdGhlciBzeXN0ZW0=" doc:"the secret that the system has made; left out: one is made here, or is awaited from Sentry, Linear and PagerDuty"`
}

// Connected is the answer of integration.source_connect and integration.rotate.
type Connected struct {
	_ struct{} `doc:"A source, with its secret." schema:"ConnectedSource"`
	Source
	Secret *string `json:"secret" example:"dev_whk_example" doc:"signs what the system sends; it is not shown again. Null: the system makes it, or has made it"`
}

// trust returns a fault unless the caller may let work begin.
func trust(ctx context.Context, trusted bool) error {
	if !trusted {
		return nil
	}
	return policy.Require(policy.WriteTasks).Check(policy.From(ctx))
}

// repository is the id of a repository of tx.Account by its name.
func repository(tx *db.Tx, full string) (*string, error) {
	if full == "" {
		return nil, nil
	}
	owner, name, _ := strings.Cut(full, "/")
	r, ok, err := repo.ByName(tx, owner, name)
	if err == nil && !ok {
		err = fault.Missing("repository")
	}
	return &r.ID, err
}

// bound are the ids of repositories by names of projects.
func bound(tx *db.Tx, projects map[string]string) (out db.JSON[map[string]string], err error) {
	out.V = map[string]string{}
	for project, full := range projects {
		if strings.TrimSpace(project) == "" || len(project) > 200 || !strings.Contains(full, "/") {
			return out, fault.Field("projects", "must have the names of projects, each with a repository owner/name")
		}
		at, err := repository(tx, full)
		if err != nil {
			return out, err
		}
		out.V[project] = *at
	}
	return out, nil
}

func (s *Service) connect(ctx context.Context, in connectIn) (out Connected, err error) {
	if err := trust(ctx, in.Trusted); err != nil {
		return out, err
	}
	secret := in.Secret
	if secret == "" && !inbound.MakesSecret(string(in.Kind)) {
		secret = id.Secret(id.Webhook)
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := countLiving.One(tx, tx.Account)
		if err != nil {
			return err
		}
		if n >= maxSources {
			return fault.Reason("too-many-sources", "The account has 50 sources. Disconnect one first.")
		}
		a := insertArgs{
			ID: id.New(), AccountID: tx.Account, Name: in.Name, Kind: string(in.Kind), Label: in.Label, Bot: in.Bot, Trusted: in.Trusted,
			CreatedBy: policy.From(ctx).Label(), CreatedAt: tx.Micros(),
		}
		if a.RepoID, err = repository(tx, in.Repo); err != nil {
			return err
		}
		if a.Projects, err = bound(tx, in.Projects); err != nil {
			return err
		}
		if secret != "" {
			if a.Sealed, err = s.seal(a.ID, secrets{Current: secret}); err != nil {
				return err
			}
		}
		if _, err := insert.Exec(tx, a); err != nil {
			return err
		}
		if out, err = s.connected(tx, a.ID); err != nil {
			return err
		}
		if secret != "" && in.Secret == "" {
			out.Secret = &secret
		}
		return connectedEvent.Record(tx, event.Subject{ID: a.ID}, connectedData{Kind: string(in.Kind), Name: in.Name, Trusted: in.Trusted})
	})
	return out, taken(err)
}

// taken is the fault of a name that another source has.
func taken(err error) error {
	if db.IsUnique(err) {
		return fault.Reason("source-exists", "There is a source of that name.")
	}
	return err
}

// connected shows a source of tx.Account, without a secret.
func (s *Service) connected(tx *db.Tx, sourceID string) (out Connected, err error) {
	r, err := byID.One(tx, tx.Account, sourceID)
	if err != nil {
		return out, err
	}
	shown, err := s.show(tx, r)
	if err == nil {
		out.Source = shown[0]
	}
	return out, err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the source"`
}

// find reads a source of tx.Account that was not disconnected.
func find(tx *db.Tx, sourceID string) (row, error) {
	r, ok, err := byID.Maybe(tx, tx.Account, sourceID)
	if err == nil && (!ok || r.DeletedAt != nil) {
		err = fault.Missing("source")
	}
	return r, err
}

// locked is find for a source that is changed.
func locked(tx *db.Tx, sourceID string) (row, error) {
	r, ok, err := lock.Maybe(tx, tx.Account, sourceID)
	if err == nil && !ok {
		err = fault.Missing("source")
	}
	return r, err
}

func (s *Service) get(ctx context.Context, in idIn) (out Source, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		shown, err := s.show(tx, r)
		if err == nil {
			out = shown[0]
		}
		return err
	})
	return out, err
}

type updateIn struct {
	ID       string             `json:"id" format:"uuid" doc:"id of the source"`
	Name     *string            `json:"name,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" says:"must be at most 100 letters, digits, points, hyphens and underscores, and begin with a letter or digit" example:"errors" doc:"its new name"`
	Repo     *string            `json:"repo,omitempty" pattern:"^([^/\\s]+/[^/\\s]+)?$" says:"must have the form OWNER/NAME, or be empty" maxLength:"200" example:"acme/web" doc:"owner/name; empty: none"`
	Projects *map[string]string `json:"projects,omitempty" maxItems:"200" maxLength:"200" example:"{\"front-end\":\"acme/web\"}" doc:"repositories by the names of projects, in place of all that there were"`
	Label    *string            `json:"label,omitempty" maxLength:"100" example:"agents" doc:"only issues with this label become asks; empty: all do"`
	Bot      *string            `json:"bot,omitempty" maxLength:"200" example:"yard-bot" doc:"whose deliveries are own_echo; empty: nobody's"`
	Trusted  *bool              `json:"trusted,omitempty" example:"false" doc:"whether work may begin without a person; true needs write:tasks"`
}

func (s *Service) update(ctx context.Context, in updateIn) (out Source, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := locked(tx, in.ID)
		if err != nil {
			return err
		}
		a := changeArgs{
			AccountID: tx.Account, ID: r.ID, Name: or(in.Name, r.Name), RepoID: r.RepoID, Projects: r.Projects,
			Label: or(in.Label, r.Label),
			Bot:   or(in.Bot, r.Bot), Trusted: or(in.Trusted, r.Trusted),
		}
		if in.Repo != nil {
			if a.RepoID, err = repository(tx, *in.Repo); err != nil {
				return err
			}
		}
		if in.Projects != nil {
			if a.Projects, err = bound(tx, *in.Projects); err != nil {
				return err
			}
		}
		// Where the deliveries of a trusted source lead, and who signs them, is as good as the
		// right to begin work.
		if err := trust(ctx, a.Trusted); err != nil {
			return err
		}
		if _, err := change.Exec(tx, a); err != nil {
			return err
		}
		shown, err := s.connected(tx, r.ID)
		if err != nil {
			return err
		}
		out = shown.Source
		return updatedEvent.Record(tx, event.Subject{ID: r.ID}, connectedData{Kind: r.Kind, Name: a.Name, Trusted: a.Trusted})
	})
	return out, taken(err)
}

func or[T any](given *T, otherwise T) T {
	if given != nil {
		return *given
	}
	return otherwise
}

type rotateIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the source"`
	Secret string `json:"secret,omitempty" minLength:"16" maxLength:"200" example:"whsec_c2VjcmV0IG9mIHRoZSBvdGhlciBzeXN0ZW0=" doc:"the secret that the system has made; left out: one is made here"`
	AtOnce bool   `json:"at_once,omitempty" example:"false" doc:"end the secret before it now, and not in 24 hours"`
}

func (s *Service) rotate(ctx context.Context, in rotateIn) (out Connected, err error) {
	secret := in.Secret
	if secret == "" {
		secret = id.Secret(id.Webhook)
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := locked(tx, in.ID)
		if err != nil {
			return err
		}
		if err := trust(ctx, r.Trusted); err != nil {
			return err
		}
		old, err := s.open(r)
		if err != nil {
			return err
		}
		all, a := secrets{Current: secret}, setSecretsArgs{ID: r.ID}
		if old.Current != "" && !in.AtOnce {
			until := db.Micros(tx.Now.Add(overlap))
			all.Previous, a.PreviousUntil = old.Current, &until
		}
		if a.Sealed, err = s.seal(r.ID, all); err != nil {
			return err
		}
		if _, err := setSecrets.Exec(tx, a); err != nil {
			return err
		}
		if out, err = s.connected(tx, r.ID); err != nil {
			return err
		}
		if in.Secret == "" {
			out.Secret = &secret
		}
		return rotatedEvent.Record(tx, event.Subject{ID: r.ID}, rotatedData{AtOnce: in.AtOnce, Name: r.Name})
	})
	return out, err
}

// Disconnected is the answer of integration.disconnect.
type Disconnected struct {
	_            struct{} `doc:"What integration.disconnect did." schema:"DisconnectedSource"`
	ID           string   `json:"id" format:"uuid" doc:"id of the source"`
	Disconnected bool     `json:"disconnected" doc:"false: it was disconnected before"`
}

func (s *Service) disconnect(ctx context.Context, in idIn) (out Disconnected, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, ok, err := byID.Maybe(tx, tx.Account, in.ID)
		if err == nil && !ok {
			err = fault.Missing("source")
		}
		if err != nil {
			return err
		}
		n, err := erase.Exec(tx, tx.Account, r.ID, tx.Micros())
		if out = (Disconnected{ID: r.ID, Disconnected: n > 0}); err != nil || n == 0 {
			return err
		}
		if _, err := dropLedger.Exec(tx, r.ID); err != nil {
			return err
		}
		if _, err := dropSeen.Exec(tx, r.ID); err != nil {
			return err
		}
		return disconnectedEvent.Record(tx, event.Subject{ID: r.ID}, namedData{Name: r.Name})
	})
	return out, err
}
