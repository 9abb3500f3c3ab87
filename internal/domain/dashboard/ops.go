package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Knowledge base, dashboards, digests, notifications"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadDashboards), policy.Require(policy.WriteDashboards)
	builtin := op.Refusal{Status: 409, Slug: "dashboard-builtin"}
	exists, many := op.Refusal{Status: 409, Slug: "dashboard-exists"}, op.Refusal{Status: 409, Slug: "too-many-dashboards"}
	missing, changed := op.Refusal{Status: 404, Slug: "not-found"}, op.Refusal{Status: 409, Slug: "dashboard-changed"}
	return []op.Op{
		op.New(op.Row{ID: "dashboard.create", Method: "POST", Path: "/v1/dashboards", Group: group, Rule: write, Status: 201,
			Refuses: []op.Refusal{missing, exists, builtin, many, changed},
			Summary: "Make a board of widgets",
			Doc: "A name that is in use is refused, and board_id and board_name say whose; replace rebuilds that board with these widgets. " +
				"A personal board is seen by the caller alone. A built-in board is never replaced."}, s.create),
		op.New(op.Row{ID: "dashboard.list", Method: "GET", Path: "/v1/dashboards", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The boards that the account shares, and the caller's own, newest first",
			Doc:     "Without their widgets."}, s.list),
		op.New(op.Row{ID: "dashboard.get", Method: "GET", Path: "/v1/dashboards/{id}", Group: group, Rule: read,
			Refuses: []op.Refusal{missing},
			Summary: "A board, with all widgets and what they show",
			Doc: "What a widget shows is read now, and only what the credential may see: missing_scopes says what it lacks for a widget " +
				"that shows nothing. Tables and feeds have their first 10 rows; dashboard.widget_page has the others."}, s.get),
		op.New(op.Row{ID: "dashboard.update", Method: "PATCH", Path: "/v1/dashboards/{id}", Group: group, Rule: write,
			Refuses: []op.Refusal{missing, exists, builtin, changed},
			Summary: "Rename a board, or lay it out anew",
			Doc:     "The widgets stay as they are; dashboard.create with replace changes them."}, s.update),
		op.New(op.Row{ID: "dashboard.delete", Method: "DELETE", Path: "/v1/dashboards/{id}", Group: group, Rule: write,
			Refuses: []op.Refusal{missing, builtin},
			Summary: "Delete a board with its widgets",
			Doc:     "A built-in board stays."}, s.delete),
		op.New(op.Row{ID: "dashboard.widget_page", Method: "POST", Path: "/v1/dashboards/{id}/widgets/{wid}/page", Group: group, Rule: read,
			Refuses: []op.Refusal{missing},
			Summary: "A page of what one widget shows",
			Doc:     "For tables and feeds; any other widget answers what dashboard.get has of it."}, s.page),
		op.New(op.Row{ID: "builtin_dashboard_sync.enqueue", Method: "POST", Path: "/v1/admin/builtin-dashboard-sync",
			Group: "Account and platform operator", Rule: policy.Require(policy.AdminAccounts), Status: 202,
			Refuses: []op.Refusal{{Status: 409, Slug: "import_in_flight"}},
			Summary: "Make the built-in boards of all accounts anew",
			Doc: "Queues one pass and answers at once. Boards of accounts are not touched. Refused while a pass that was asked for is " +
				"queued or running."}, s.enqueue),
	}
}

// Place is where a widget is on the grid of twelve columns.
type Place struct {
	_      struct{} `doc:"Where a widget is on the grid." schema:"DashboardPlace"`
	Widget string   `json:"widget" format:"uuid" doc:"id of the widget"`
	X      int      `json:"x" minimum:"0" maximum:"11" example:"0" doc:"the first of its columns, of 12"`
	Y      int      `json:"y" minimum:"0" maximum:"1000" example:"0" doc:"the first of its rows"`
	W      int      `json:"w" minimum:"1" maximum:"12" example:"4" doc:"how many columns it has"`
	H      int      `json:"h" minimum:"1" maximum:"100" example:"2" doc:"how many rows it has"`
}

// Head is a board in a list.
type Head struct {
	_         struct{}  `doc:"A board, without its widgets." schema:"DashboardHead"`
	ID        string    `json:"id" format:"uuid" doc:"id of the board"`
	Name      string    `json:"name" example:"Deliveries" doc:"its name"`
	Personal  bool      `json:"personal" doc:"true: the caller's own, whom alone it is shown to"`
	Builtin   bool      `json:"builtin" doc:"true: every account has it, and it is neither changed nor deleted"`
	Version   int64     `json:"version" example:"3" doc:"which state of the board it is; each change counts it up"`
	CreatedBy string    `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who made it"`
	CreatedAt time.Time `json:"created_at" doc:"when it was made"`
	UpdatedAt time.Time `json:"updated_at" doc:"when it was last changed"`
}

// Widget is a widget of a board.
type Widget struct {
	_      struct{} `doc:"A widget of a board, and what it shows." schema:"DashboardWidget"`
	ID     string   `json:"id" format:"uuid" doc:"id of the widget"`
	Kind   Kind     `json:"kind" doc:"how it shows it"`
	Title  *string  `json:"title" example:"Merged this week" doc:"heading; null: its source names it"`
	Source *string  `json:"source" example:"pulls_merged" doc:"what it shows; null for markdown"`
	Window *string  `json:"window" example:"7d" doc:"how far it looks back; null: it is as of now"`
	Repo   *string  `json:"repo" example:"null" doc:"owner/name of the one repository that it shows; null: all"`
	Text   *string  `json:"text" example:"null" doc:"the text of markdown; null for others"`
	Data   Data     `json:"data" doc:"what it shows the caller now"`
}

// Board is a board with its widgets.
type Board struct {
	_ struct{} `doc:"A board of widgets." schema:"Dashboard"`
	Head
	Layout  []Place  `json:"layout" doc:"where widgets are; those that it does not name follow in their order"`
	Widgets []Widget `json:"widgets" doc:"the widgets in their order"`
}

func (r row) head() Head {
	return Head{
		ID: r.ID, Name: r.Name, Personal: r.OwnerID != "", Builtin: r.Builtin != nil, Version: r.Version,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// nameData is a board for the record. What a person calls a board of their own is theirs.
func (r row) data(widgets int) nameData {
	d := nameData{Name: r.Name, Personal: r.OwnerID != "", Widgets: widgets}
	if d.Personal {
		d.Name = ""
	}
	return d
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// show is a board as the actor of the transaction sees it.
func (s *Service) show(tx *db.Tx, r row) (Board, error) {
	out := Board{Head: r.head(), Layout: r.Layout.V, Widgets: []Widget{}}
	rows, err := widgetsOf.All(tx, tx.Account, r.ID)
	if err != nil {
		return out, err
	}
	for _, w := range rows {
		v := w.Spec.V
		one := Widget{ID: w.ID, Kind: Kind(v.Kind), Title: text(v.Title), Source: text(v.Source), Window: text(v.Window),
			Text: text(v.Text)}
		if v.RepoID != "" {
			name, err := s.Repos.Name(tx, v.RepoID)
			if err != nil {
				return out, err
			}
			one.Repo = &name
		}
		if one.Data, err = s.data(tx, v, page{most: firstRows}); err != nil {
			return out, err
		}
		out.Widgets = append(out.Widgets, one)
	}
	return out, nil
}

type createIn struct {
	Name     string     `json:"name" minLength:"1" maxLength:"80" example:"Deliveries" doc:"its name, one line"`
	Personal bool       `json:"personal,omitempty" doc:"true: for the caller alone; else the account shares it"`
	Widgets  []widgetIn `json:"widgets" maxItems:"40" doc:"its widgets"`
	Replace  bool       `json:"replace,omitempty" doc:"true: rebuild the board of that name, if there is one"`
	If       *int64     `json:"if_version,omitempty" minimum:"0" example:"3" doc:"the version that is rebuilt, else 409"`
}

func named(name string) (string, error) {
	if name = strings.TrimSpace(name); name == "" || strings.ContainsAny(name, "\r\n") {
		return "", fault.Field("name", "must be one line")
	}
	return name, nil
}

// taken is the refusal of a name that is in use, or that of a built-in board.
func taken(r row) error {
	if r.Builtin != nil {
		return fault.Reason("dashboard-builtin", "The built-in board "+r.Name+" is neither changed nor deleted. Make one of another name.").
			With("board_id", r.ID).With("board_name", r.Name)
	}
	return fault.Reason("dashboard-exists", "There is a board "+r.Name+". Send replace to rebuild it.").
		With("board_id", r.ID).With("board_name", r.Name)
}

// fresh refuses a change of a version of a board that another has followed.
func fresh(r row, want *int64) error {
	if want == nil || *want == r.Version {
		return nil
	}
	return fault.Reason("dashboard-changed", fmt.Sprintf("Version %d of the board %s is the newest, not %d.", r.Version, r.Name, *want)).
		With("version", r.Version)
}

func (s *Service) create(ctx context.Context, in createIn) (out Board, err error) {
	actor := policy.From(ctx)
	name, err := named(in.Name)
	if err != nil {
		return out, err
	}
	r := row{Name: name, NameKey: strings.ToLower(name), CreatedBy: actor.Label(), Layout: db.JSON[[]Place]{V: []Place{}}}
	if in.Personal {
		if r.OwnerID = actor.UserID; r.OwnerID == "" {
			return out, fault.New(fault.Forbidden, "user-required", "A personal board needs a credential that names a user.")
		}
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r := r
		was, there, err := byName.Maybe(tx, tx.Account, r.OwnerID, r.NameKey)
		switch {
		case err != nil:
			return err
		case there && (was.Builtin != nil || !in.Replace):
			return taken(was)
		case there:
			if err := fresh(was, in.If); err != nil {
				return err
			}
		}
		specs := make([]Spec, len(in.Widgets))
		for i, w := range in.Widgets {
			if specs[i], err = s.spec(tx, i, w); err != nil {
				return err
			}
		}
		kind := createdEvent
		if there {
			kind = replacedEvent
			was.Name, was.Layout, was.UpdatedAt, was.Version = r.Name, r.Layout, tx.Now, was.Version+1
			r = was
			_, err = update.Exec(tx, r)
		} else {
			r.ID, r.AccountID, r.CreatedAt, r.UpdatedAt, r.Version = id.New(), tx.Account, tx.Now, tx.Now, 1
			_, err = insert.Exec(tx, r)
		}
		if err != nil {
			return err
		}
		if n, err := countOf.One(tx, tx.Account, r.OwnerID); err != nil {
			return err
		} else if n > mostBoards {
			return fault.Reason("too-many-dashboards", "There are 100 boards. Delete one first.")
		}
		if err := fillIn(tx, r, specs); err != nil {
			return err
		}
		if out, err = s.show(tx, r); err != nil {
			return err
		}
		return kind.Record(tx, event.Subject{ID: r.ID}, r.data(len(specs)))
	})
	if db.IsUnique(err) { // somebody was faster
		err = fault.Reason("dashboard-exists", "There is a board of that name. Send replace to rebuild it.")
	}
	return out, err
}

// fillIn gives a board its widgets, in place of those that it has.
func fillIn(tx *db.Tx, r row, specs []Spec) error {
	if _, err := clear.Exec(tx, r.AccountID, r.ID); err != nil {
		return err
	}
	for i, v := range specs {
		w := widgetRow{ID: id.New(), DashboardID: r.ID, AccountID: r.AccountID, Place: i, Spec: db.JSON[Spec]{V: v}}
		if _, err := addWidget.Exec(tx, w); err != nil {
			return err
		}
	}
	return nil
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Head], err error) {
	user := policy.From(ctx).UserID
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := list(tx, in.PageIn, user)
		out = op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) }, row.head)
		return err
	})
	return out, err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the board"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Board, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, byID, in.ID, policy.From(ctx).UserID)
		if err == nil {
			out, err = s.show(tx, r)
		}
		return err
	})
	return out, err
}

type updateIn struct {
	ID     string   `json:"id" format:"uuid" doc:"id of the board"`
	Name   *string  `json:"name,omitempty" minLength:"1" maxLength:"80" example:"Deliveries" doc:"its new name"`
	Layout *[]Place `json:"layout,omitempty" maxItems:"40" example:"[]" doc:"where widgets are, in place of what was"`
	If     *int64   `json:"if_version,omitempty" minimum:"0" example:"3" doc:"the version that is changed, else 409"`
}

func (s *Service) update(ctx context.Context, in updateIn) (out Board, err error) {
	if in.Name == nil && in.Layout == nil {
		return out, fault.Field("", "at least one of name, layout is required")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, lockID, in.ID, policy.From(ctx).UserID)
		switch {
		case err != nil:
			return err
		case r.Builtin != nil:
			return taken(r)
		}
		if err := fresh(r, in.If); err != nil {
			return err
		}
		rows, err := widgetsOf.All(tx, tx.Account, r.ID)
		if err != nil {
			return err
		}
		if in.Name != nil {
			if r.Name, err = named(*in.Name); err != nil {
				return err
			}
			r.NameKey = strings.ToLower(r.Name)
			other, there, err := byName.Maybe(tx, tx.Account, r.OwnerID, r.NameKey)
			if err != nil || there && other.ID != r.ID {
				if err == nil {
					err = taken(other)
				}
				return err
			}
		}
		if in.Layout != nil {
			if r.Layout.V, err = laid(*in.Layout, rows); err != nil {
				return err
			}
		}
		r.UpdatedAt, r.Version = tx.Now, r.Version+1
		if _, err := update.Exec(tx, r); err != nil {
			return err
		}
		if out, err = s.show(tx, r); err != nil {
			return err
		}
		return updatedEvent.Record(tx, event.Subject{ID: r.ID}, r.data(len(rows)))
	})
	if db.IsUnique(err) {
		err = fault.Reason("dashboard-exists", "There is a board of that name.")
	}
	return out, err
}

// laid checks a layout of widgets: each is there, is named once, and fits the grid.
func laid(in []Place, rows []widgetRow) ([]Place, error) {
	seen := map[string]bool{}
	for i, p := range in {
		at := fmt.Sprintf("layout.%d", i)
		switch {
		case !slices.ContainsFunc(rows, func(w widgetRow) bool { return w.ID == p.Widget }):
			return nil, fault.Field(at+".widget", "is no widget of the board")
		case seen[p.Widget]:
			return nil, fault.Field(at+".widget", "is named twice")
		case p.X+p.W > 12:
			return nil, fault.Field(at+".w", "does not fit into 12 columns")
		}
		seen[p.Widget] = true
	}
	return in, nil
}

// Deleted is the answer of dashboard.delete.
type Deleted struct {
	_       struct{} `doc:"What dashboard.delete did." schema:"DeletedDashboard"`
	ID      string   `json:"id" format:"uuid" doc:"id of the board"`
	Deleted bool     `json:"deleted" doc:"always true"`
}

func (s *Service) delete(ctx context.Context, in idIn) (out Deleted, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, lockID, in.ID, policy.From(ctx).UserID)
		switch {
		case err != nil:
			return err
		case r.Builtin != nil:
			return taken(r)
		}
		if err := fillIn(tx, r, nil); err != nil {
			return err
		}
		if _, err := remove.Exec(tx, tx.Account, r.ID); err != nil {
			return err
		}
		out = Deleted{ID: r.ID, Deleted: true}
		return deletedEvent.Record(tx, event.Subject{ID: r.ID}, r.data(0))
	})
	return out, err
}

type widgetPageIn struct {
	ID      string `json:"id" format:"uuid" doc:"id of the board"`
	Widget  string `json:"wid" format:"uuid" doc:"id of the widget"`
	Cursor  string `json:"cursor,omitempty" maxLength:"1000" example:"dzAwMQ" doc:"next_cursor of the page before"`
	PerPage *int   `json:"per_page,omitempty" minimum:"1" maximum:"100" example:"25" doc:"rows a page; 25 unless sent"`
}

func (s *Service) page(ctx context.Context, in widgetPageIn) (out Data, err error) {
	p := page{most: 25}
	if in.PerPage != nil {
		p.most = *in.PerPage
	}
	if p.after, err = from(in.Cursor); err != nil {
		return out, err
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, byID, in.ID, policy.From(ctx).UserID)
		if err != nil {
			return err
		}
		all, err := widgetsOf.All(tx, tx.Account, r.ID)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(w widgetRow) bool { return w.ID == in.Widget })
		if i < 0 {
			return fault.Missing("widget")
		}
		out, err = s.data(tx, all[i].Spec.V, p)
		return err
	})
	return out, err
}
