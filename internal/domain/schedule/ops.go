package schedule

import (
	"context"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/calendar"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Schedules"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadTasks), policy.Require(policy.WriteTasks)
	disabled := op.Refusal{Status: 409, Slug: "repo_disabled"}
	never, often := op.Refusal{Status: 422, Slug: "schedule-never"}, op.Refusal{Status: 422, Slug: "schedule-too-often"}
	return []op.Op{
		op.New(op.Row{ID: "schedule.create", Method: "POST", Path: "/v1/schedules", Group: group, Rule: write.OfUser(), Status: 201,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, disabled, {Status: 409, Slug: "too-many-schedules"}, never, often},
			Summary: "File an ask again and again, at the times of a cron expression",
			Doc: "cron has five fields, in the time zone of zone: minute, hour, day of the month, month, day of the week. A time of day " +
				"that clocks show twice occurs the first time; one that they pass over occurs at that instant; where the hour is *, " +
				"every hour that passes counts. Two occurrences are at least 5 minutes apart. An occurrence is filed within a minute or " +
				"not at all, so a server that was off all night has nothing to make up for. The asks are filed for the person " +
				"who makes the schedule, or was the last to change it, and with no more rights."}, s.create),
		op.New(op.Row{ID: "schedule.list", Method: "GET", Path: "/v1/schedules", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The account's schedules, newest first",
			Doc:     "Each with its next occurrence, what became of the last one, and what keeps it from filing."}, s.list),
		op.New(op.Row{ID: "schedule.get", Method: "GET", Path: "/v1/schedules/{id}", Group: group, Rule: read,
			Summary: "One schedule",
			Doc:     "upcoming has the next three occurrences, as instants."}, s.get),
		op.New(op.Row{ID: "schedule.update", Method: "PATCH", Path: "/v1/schedules/{id}", Group: group, Rule: write.OfUser(),
			Refuses: []op.Refusal{disabled, never, often},
			Summary: "Change a schedule, pause it, or resume it",
			Doc: "What is left out stays as it is. Whoever changes it, or resumes it, is the person for whom it files from then on; " +
				"to pause it alone changes that not. What was due while it was paused is not made up for."}, s.update),
		op.New(op.Row{ID: "schedule.delete", Method: "DELETE", Path: "/v1/schedules/{id}", Group: group, Rule: write,
			Summary: "Delete a schedule",
			Doc:     "What it has filed stays."}, s.delete),
		op.New(op.Row{ID: "schedule.run_now", Method: "POST", Path: "/v1/schedules/{id}/run-now", Group: group, Rule: write, Status: 202,
			Refuses: []op.Refusal{disabled},
			Summary: "File the ask of a schedule now, besides its occurrences",
			Doc: "For the caller, paused or not, and whether or not the last one is done. The next occurrence stays where it is; with " +
				"when_busy skip it looks at this ask too."}, s.runNow),
	}
}

// Schedule is a schedule as the API shows it.
type Schedule struct {
	_           struct{}          `doc:"An ask that is filed again and again."`
	ID          string            `json:"id" format:"uuid" doc:"id of the schedule"`
	Repo        *string           `json:"repo" example:"acme/web" doc:"owner/name; null: triage picks one"`
	Title       string            `json:"title" example:"Update dependencies" doc:"title of the asks"`
	Body        string            `json:"body" example:"Raise what has a newer minor version." doc:"what is wanted"`
	Labels      map[string]string `json:"labels" example:"{\"team\":\"web\"}" doc:"names and values that the asks are filed with"`
	Cron        string            `json:"cron" example:"0 6 * * 1-5" doc:"minute, hour, day of the month, month, day of the week"`
	Zone        string            `json:"zone" example:"Europe/Berlin" doc:"the time zone of cron"`
	WhenBusy    WhenBusy          `json:"when_busy" doc:"while what it filed last is not done: queue files another ask, skip leaves the occurrence out"`
	State       State             `json:"state" doc:"paused: it files nothing until somebody resumes it"`
	Obstacle    *Obstacle         `json:"obstacle" doc:"what keeps it from filing at present; null: nothing does. person_left: the person for whom it files has left the account, was suspended or may file no asks, and the next occurrence pauses it"`
	NextAt      *time.Time        `json:"next_at" doc:"the next occurrence; null while it is paused"`
	Upcoming    []time.Time       `json:"upcoming" doc:"the next occurrences, at most three; empty while it is paused"`
	LastAt      *time.Time        `json:"last_at" doc:"the last occurrence, or run_now; null: there was none"`
	LastOutcome *Outcome          `json:"last_outcome" doc:"what became of it. filed: an ask; busy: the one before was not done; late: the server was off, or behind by more than a minute"`
	LastAskID   *string           `json:"last_ask_id" format:"uuid" doc:"the last ask that was filed; null: none was"`
	RequestedBy string            `json:"requested_by" format:"uuid" doc:"id of the person for whom it files"`
	CreatedBy   string            `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who made it"`
	CreatedAt   time.Time         `json:"created_at" doc:"when it was made"`
	UpdatedAt   time.Time         `json:"updated_at" doc:"when a person last changed it"`
}

// show is a schedule of tx.Account as clients see it.
func (s *Service) show(tx *db.Tx, r row) (Schedule, error) {
	out := Schedule{
		ID: r.ID, Title: r.Title, Body: r.Body, Labels: r.Labels.V, Cron: r.Cron, Zone: r.Zone, WhenBusy: r.WhenBusy, State: Active,
		NextAt: r.NextAt, Upcoming: []time.Time{}, LastAt: r.LastAt, LastOutcome: (*Outcome)(r.LastOutcome), LastAskID: r.LastAskID,
		RequestedBy: r.UserID, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.PausedWhy != nil {
		out.State = Paused
	}
	if r.RepoID != nil {
		repo, ok, err := s.Repos.ByID(tx, *r.RepoID)
		if err != nil {
			return out, err
		}
		if ok {
			out.Repo = &repo.Name
		}
	}
	why, err := s.obstacle(tx, r)
	if err != nil {
		return out, err
	}
	if why != "" {
		out.Obstacle = (*Obstacle)(&why)
	}
	for at := r.NextAt; at != nil && len(out.Upcoming) < shown; {
		out.Upcoming = append(out.Upcoming, *at)
		if at, err = r.after(*at); err != nil {
			return out, err
		}
	}
	return out, nil
}

type createIn struct {
	Repo     string            `json:"repo,omitempty" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"owner/name; without it triage picks one for each ask"`
	Title    string            `json:"title" minLength:"1" maxLength:"200" example:"Update dependencies" doc:"title of the asks, one line"`
	Body     string            `json:"body" minLength:"1" maxLength:"20000" example:"Raise what has a newer minor version." doc:"what is wanted and why"`
	Labels   map[string]string `json:"labels,omitempty" maxItems:"50" maxLength:"200" example:"{\"team\":\"web\"}" doc:"names and values of your own, which the asks get"`
	Cron     string            `json:"cron" maxLength:"200" example:"0 6 * * 1-5" doc:"when to file: minute, hour, day of the month, month, day of the week"`
	Zone     string            `json:"zone,omitempty" maxLength:"64" example:"Europe/Berlin" doc:"time zone of cron, by its name in the IANA database; the account's unless given"`
	WhenBusy WhenBusy          `json:"when_busy,omitempty" doc:"what to do while the last ask is not done: queue, the default, or skip"`
	Paused   bool              `json:"paused,omitempty" doc:"true: it files nothing until it is resumed"`
}

// checkTexts refuses texts that an ask would not take.
func checkTexts(title, body string) error {
	switch {
	case strings.TrimSpace(title) == "":
		return fault.Field("title", "must not be empty")
	case strings.ContainsAny(title, "\r\n"):
		return fault.Field("title", "must be one line")
	case strings.TrimSpace(body) == "":
		return fault.Field("body", "must not be empty")
	}
	return nil
}

// refuse is a fault about an expression that could be read.
func refuse(slug, detail string) error {
	e := fault.New(fault.Unprocessable, slug, detail)
	e.Fields = map[string][]string{"cron": {detail}}
	return e
}

// checkTimes refuses expressions that are none, that never occur, or too often.
func (r row) checkTimes(now time.Time) error {
	zone, err := calendar.Zone(r.Zone)
	if err != nil {
		return fault.Field("zone", err.Error())
	}
	c, err := calendar.ParseCron(r.Cron, zone)
	if err != nil {
		return fault.Field("cron", err.Error())
	}
	if _, ok := c.Next(now); !ok {
		return refuse("schedule-never", "There is no day on which the expression occurs.")
	}
	if c.Closest() < closest {
		return refuse("schedule-too-often", "Two occurrences must be at least 5 minutes apart.")
	}
	return nil
}

// at sets the repository of a schedule.
func (s *Service) at(tx *db.Tx, r *row, name string) error {
	owner, short, _ := strings.Cut(name, "/")
	repo, ok, err := s.Repos.ByName(tx, owner, short)
	switch {
	case err != nil:
		return err
	case !ok:
		return fault.Missing("repository")
	case !repo.Enabled || repo.Gone:
		return fault.Reason("repo_disabled", "The repository "+name+" is not enabled.")
	}
	r.RepoID = &repo.ID
	return nil
}

// of has a schedule file for the caller, who is a person.
func (r *row) of(actor policy.Actor) {
	r.UserID, r.Scopes.V = actor.UserID, actor.Scopes.Names()
}

func (r row) data() setData {
	return setData{
		Cron: r.Cron, Paused: r.PausedWhy != nil, RequestedBy: r.UserID, Title: r.Title, WhenBusy: string(r.WhenBusy), Zone: r.Zone,
	}
}

func (s *Service) create(ctx context.Context, in createIn) (out Schedule, err error) {
	if err := checkTexts(in.Title, in.Body); err != nil {
		return out, err
	}
	actor := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r := row{
			ID: id.New(), AccountID: tx.Account, Title: strings.TrimSpace(in.Title), Body: in.Body,
			Labels: db.JSON[map[string]string]{V: in.Labels}, Cron: in.Cron, Zone: in.Zone, WhenBusy: in.WhenBusy,
			CreatedBy: actor.Label(), CreatedAt: tx.Now, UpdatedAt: tx.Now,
		}
		r.of(actor)
		if r.Labels.V == nil {
			r.Labels.V = map[string]string{}
		}
		if r.Zone == "" {
			if r.Zone, err = people.Zone(tx, tx.Account); err != nil {
				return err
			}
		}
		if r.WhenBusy == "" {
			r.WhenBusy = Queue
		}
		if err := r.checkTimes(tx.Now); err != nil {
			return err
		}
		if in.Repo != "" {
			if err := s.at(tx, &r, in.Repo); err != nil {
				return err
			}
		}
		if _, err := people.LockAccount(tx, tx.Account); err != nil {
			return err
		}
		if n, err := count.One(tx, tx.Account); err != nil {
			return err
		} else if n >= most {
			return fault.Reason("too-many-schedules", "The account has 50 schedules. Delete one first.")
		}
		if err := r.turn(in.Paused, tx.Now); err != nil {
			return err
		}
		if _, err := insert.Exec(tx, r); err != nil {
			return err
		}
		s.order(tx, r)
		if out, err = s.show(tx, r); err != nil {
			return err
		}
		return createdEvent.Record(tx, r.subject(), r.data())
	})
	return out, err
}

// turn pauses a schedule, or finds its next occurrence.
func (r *row) turn(paused bool, now time.Time) (err error) {
	if paused {
		why := byPerson
		r.PausedWhy, r.NextAt = &why, nil
		return nil
	}
	r.PausedWhy = nil
	r.NextAt, err = r.after(now)
	return err
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (page op.Page[Schedule], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := list(tx, in.PageIn)
		if err != nil {
			return err
		}
		found := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
		page = op.Page[Schedule]{Data: make([]Schedule, len(found.Data)), NextCursor: found.NextCursor}
		for i, r := range found.Data {
			if page.Data[i], err = s.show(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the schedule"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Schedule, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, byID, in.ID)
		if err != nil {
			return err
		}
		out, err = s.show(tx, r)
		return err
	})
	return out, err
}

type updateIn struct {
	ID       string             `json:"id" format:"uuid" doc:"id of the schedule"`
	Repo     *string            `json:"repo,omitempty" pattern:"^([^/\\s]+/[^/\\s]+)?$" says:"must have the form OWNER/NAME, or be empty" maxLength:"200" doc:"owner/name; empty: triage picks one for each ask"`
	Title    *string            `json:"title,omitempty" minLength:"1" maxLength:"200" doc:"title of the asks, one line"`
	Body     *string            `json:"body,omitempty" minLength:"1" maxLength:"20000" doc:"what is wanted and why"`
	Labels   *map[string]string `json:"labels,omitempty" maxItems:"50" maxLength:"200" doc:"names and values of your own, in place of those before"`
	Cron     *string            `json:"cron,omitempty" maxLength:"200" example:"0 6 * * 1-5" doc:"when to file"`
	Zone     *string            `json:"zone,omitempty" minLength:"1" maxLength:"64" example:"Europe/Berlin" doc:"time zone of cron"`
	WhenBusy *WhenBusy          `json:"when_busy,omitempty" doc:"what to do while the last ask is not done"`
	Paused   *bool              `json:"paused,omitempty" example:"true" doc:"true: it files nothing until it is resumed, by false"`
}

// put sets a value that was given, and tells whether it was.
func put[T any](to *T, given *T) bool {
	if given != nil {
		*to = *given
	}
	return given != nil
}

func (s *Service) update(ctx context.Context, in updateIn) (out Schedule, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, lockID, in.ID)
		if err != nil {
			return err
		}
		was := r.PausedWhy != nil
		times := put(&r.Cron, in.Cron)
		times = put(&r.Zone, in.Zone) || times
		changed := put(&r.Title, in.Title)
		changed = put(&r.Body, in.Body) || changed
		changed = put(&r.WhenBusy, in.WhenBusy) || changed || times || in.Repo != nil
		if in.Labels != nil {
			r.Labels.V, changed = *in.Labels, true
		}
		if !changed && in.Paused == nil {
			return fault.Field("", "at least one of repo, title, body, labels, cron, zone, when_busy, paused is required")
		}
		if err := checkTexts(r.Title, r.Body); err != nil {
			return err
		}
		r.Title = strings.TrimSpace(r.Title)
		if err := r.checkTimes(tx.Now); err != nil {
			return err
		}
		if in.Repo != nil {
			if r.RepoID = nil; *in.Repo != "" {
				if err := s.at(tx, &r, *in.Repo); err != nil {
					return err
				}
			}
		}
		paused := was
		put(&paused, in.Paused)
		if changed || was && !paused {
			r.of(policy.From(ctx))
		}
		if paused != was || times && !paused {
			if err := r.turn(paused, tx.Now); err != nil {
				return err
			}
		}
		if changed || paused != was {
			r.UpdatedAt = tx.Now
			if _, err := update.Exec(tx, r); err != nil {
				return err
			}
			s.order(tx, r)
		}
		if out, err = s.show(tx, r); err != nil {
			return err
		}
		return r.tell(tx, changed, was, paused)
	})
	return out, err
}

// tell records what a person has changed.
func (r row) tell(tx *db.Tx, changed, was, paused bool) error {
	switch {
	case changed:
		return UpdatedEvent.Record(tx, r.subject(), r.data())
	case was == paused:
		return nil
	case paused:
		return PausedEvent.Record(tx, r.subject(), pausedData{Title: r.Title, Why: byPerson})
	}
	return ResumedEvent.Record(tx, r.subject(), r.data())
}

// Deleted is the answer of schedule.delete.
type Deleted struct {
	_       struct{} `doc:"What schedule.delete did." schema:"DeletedSchedule"`
	ID      string   `json:"id" format:"uuid" doc:"id of the schedule"`
	Deleted bool     `json:"deleted" doc:"always true"`
}

func (s *Service) delete(ctx context.Context, in idIn) (out Deleted, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, lockID, in.ID)
		if err != nil {
			return err
		}
		if _, err := remove.Exec(tx, tx.Account, r.ID); err != nil {
			return err
		}
		s.queue.Drop(tx, r.ID)
		out = Deleted{ID: r.ID, Deleted: true}
		return DeletedEvent.Record(tx, r.subject(), titleData{Title: r.Title})
	})
	return out, err
}

// Ran is the answer of schedule.run_now.
type Ran struct {
	_     struct{} `doc:"The ask that was filed." schema:"RanSchedule"`
	ID    string   `json:"id" format:"uuid" doc:"id of the schedule"`
	AskID string   `json:"ask_id" format:"uuid" doc:"id of the ask; ask.get tells what becomes of it"`
}

func (s *Service) runNow(ctx context.Context, in idIn) (out Ran, err error) {
	actor := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, lockID, in.ID)
		if err != nil {
			return err
		}
		if why, err := s.obstacle(tx, r); err != nil {
			return err
		} else if why == RepoDisabled || why == RepoGone {
			return fault.Reason("repo_disabled", "The repository of the schedule is not enabled.")
		}
		askID, err := s.file(tx, r, "now:"+id.New(), actor.UserID, actor.Scopes)
		if err != nil {
			return err
		}
		outcome := Filed
		r.LastAt, r.LastOutcome, r.LastAskID = &tx.Now, &outcome, &askID
		if _, err := update.Exec(tx, r); err != nil {
			return err
		}
		out = Ran{ID: r.ID, AskID: askID}
		return filedEvent.Record(tx, r.subject(), filedData{AskID: askID, Occurrence: tx.Now, Title: r.Title})
	})
	return out, err
}
