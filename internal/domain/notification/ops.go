package notification

import (
	"context"
	"slices"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Knowledge base, dashboards, digests, notifications"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	mine := policy.Require(policy.ReadAccount).OfUser()
	return append([]op.Op{
		op.New(op.Row{ID: "notification.list", Method: "GET", Path: "/v1/notifications", Group: group, Rule: mine,
			Paging: &op.Paging{Default: 25, Max: 100, Filters: map[string][]string{
				"state": {"unread", "all", "archived"}, "kind": Kind("").Values()}},
			Summary: "The caller's inbox, what changed last first",
			Doc: "Without a filter: what is not archived. What is unread and about one subject is one row with a count. " +
				"A row is settled when nobody has to look any more, say because somebody has decided."}, s.list),
		op.New(op.Row{ID: "notification.counts", Method: "GET", Path: "/v1/notifications/counts", Group: group, Rule: mine,
			Summary: "How many of the caller's notifications are unread, by kind",
			Doc:     "Those that are settled do not count."}, s.counts),
		op.New(op.Row{ID: "notification.read", Method: "POST", Path: "/v1/notifications/{id}/read", Group: group, Rule: mine,
			Summary: "Mark a notification of the caller as read; again is no error",
			Doc:     "The next notice about the same subject is a row of its own."}, s.read),
		op.New(op.Row{ID: "notification.unread", Method: "POST", Path: "/v1/notifications/{id}/unread", Group: group, Rule: mine,
			Summary: "Mark a notification of the caller as unread again, and take it out of the archive",
			Doc:     "It counts again, unless it is settled."}, s.unread),
		op.New(op.Row{ID: "notification.archive", Method: "POST", Path: "/v1/notifications/{id}/archive", Group: group, Rule: mine,
			Summary: "Put a notification of the caller out of sight, as read; again is no error",
			Doc:     "filter=state:archived lists what is archived. Rows are kept for 90 days after their last change, unless the operator says otherwise."}, s.archive),
		op.New(op.Row{ID: "notification.read_all", Method: "POST", Path: "/v1/notifications/read-all", Group: group, Rule: mine,
			Summary: "Mark all notifications of the caller as read",
			Doc:     "In the account of the credential."}, s.readAll),
		op.New(op.Row{ID: "notification.prefs_list", Method: "GET", Path: "/v1/me/notification-preferences", Group: group, Rule: mine,
			Paging:  &op.Paging{Full: true},
			Summary: "What the caller is told of, and how: each kind by each channel, resolved",
			Doc:     "What the caller has not chosen is as it is for everybody. A locked kind cannot be switched off."}, s.prefs),
		op.New(op.Row{ID: "notification.prefs_set", Method: "PUT", Path: "/v1/me/notification-preferences", Group: group, Rule: mine,
			Summary: "Choose what the caller is told of, and how, and when not",
			Doc: "Cells that are left out stay as they are; so do the quiet hours, and null ends them. In quiet hours mails and push " +
				"messages wait for their end, those of urgent kinds excepted. An escalation cannot be switched off."}, s.setPrefs),
	}, s.unsubscribeOps()...)
}

// Notification is a row of an inbox.
type Notification struct {
	_          struct{}   `doc:"Something that concerns the caller." schema:"Notification"`
	ID         string     `json:"id" format:"uuid" doc:"id of the notification"`
	Kind       Kind       `json:"kind" doc:"what sort of thing it is; prefs_list says what each means"`
	Urgent     bool       `json:"urgent" doc:"quiet hours do not hold it back"`
	Title      string     `json:"title" doc:"one line; it may hold text of agents and strangers"`
	Text       string     `json:"text" example:"The checks failed three times." doc:"some lines; empty: the title says all"`
	Repo       *string    `json:"repo" doc:"owner/name; null: it is about no one repository"`
	Noun       string     `json:"noun" example:"pr" doc:"what sort of object it is about"`
	Subject    string     `json:"subject" example:"0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of that object"`
	URL        string     `json:"url" format:"uri" doc:"where to look"`
	Count      int64      `json:"count" doc:"how many notices the row stands for"`
	CreatedAt  time.Time  `json:"created_at" doc:"when the first of them came"`
	UpdatedAt  time.Time  `json:"updated_at" doc:"when the last of them came"`
	ReadAt     *time.Time `json:"read_at" doc:"when it was marked as read; null: it is unread"`
	ArchivedAt *time.Time `json:"archived_at" example:"null" doc:"when it was archived; null: it is not"`
	SettledAt  *time.Time `json:"settled_at" example:"null" doc:"since when nobody has to look any more; null: it is open, or there was nothing to do"`
}

func (s *Service) wire(r row) Notification {
	k, _ := kindOf(r.Kind)
	return Notification{
		ID: r.ID, Kind: Kind(r.Kind), Urgent: k.urgent, Title: r.Title, Text: r.Text, Repo: db.NullText(r.Repo),
		Noun: r.Noun, Subject: r.Subject,
		URL: s.address(r.Path), Count: r.Count, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ReadAt: r.ReadAt, ArchivedAt: r.ArchivedAt,
		SettledAt: r.SettledAt,
	}
}

// Newest lists at most limit rows of the inbox of a person in tx.Account, what changed
// last at the end, and the number of the newest change.
func (s *Service) Newest(tx *db.Tx, userID string, limit int) ([]Notification, int64, error) {
	at, _, err := revOf.Maybe(tx, tx.Account, userID)
	if err != nil {
		return nil, 0, err
	}
	rows, err := newest.All(tx, tx.Account, userID, limit)
	slices.Reverse(rows)
	return s.wireAll(rows), at, err
}

// Since lists the rows of the inbox of a person in tx.Account that changed after the change
// with the number after, at most limit, those that changed last, and the number of the
// last change.
func (s *Service) Since(tx *db.Tx, userID string, after int64, limit int) ([]Notification, int64, error) {
	rows, err := since.All(tx, sinceArgs{AccountID: tx.Account, UserID: userID, Rev: after, Limit: limit})
	slices.Reverse(rows)
	if len(rows) > 0 {
		after = rows[len(rows)-1].Rev
	}
	return s.wireAll(rows), after, err
}

func (s *Service) wireAll(rows []row) []Notification {
	out := make([]Notification, len(rows))
	for i, r := range rows {
		out[i] = s.wire(r)
	}
	return out
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Notification], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, policy.From(ctx).UserID, in.PageIn)
		return err
	})
	return op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.UpdatedAt, r.ID) }, s.wire), err
}

// Counts are the numbers of what is unread.
type Counts struct {
	_      struct{}         `doc:"How many notifications of the caller are unread." schema:"NotificationCounts"`
	Unread int64            `json:"unread" doc:"of all kinds"`
	Urgent int64            `json:"urgent" doc:"of the urgent kinds"`
	Kinds  map[string]int64 `json:"kinds" example:"{\"approval\": 2}" doc:"by kind; a kind without any is left out"`
}

func (s *Service) counts(ctx context.Context, _ op.None) (out Counts, err error) {
	out.Kinds = map[string]int64{}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := counts.All(tx, tx.Account, policy.From(ctx).UserID)
		for _, r := range rows {
			k, _ := kindOf(r.Kind)
			out.Kinds[r.Kind] = r.Unread
			out.Unread += r.Unread
			if k.urgent {
				out.Urgent += r.Unread
			}
		}
		return err
	})
	return out, err
}

type oneIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the notification"`
}

func (s *Service) read(ctx context.Context, in oneIn) (Notification, error) {
	return s.mark(ctx, in.ID, func(r *row, now time.Time) {
		if r.ReadAt == nil {
			r.ReadAt = &now
		}
	})
}

func (s *Service) unread(ctx context.Context, in oneIn) (Notification, error) {
	return s.mark(ctx, in.ID, func(r *row, _ time.Time) { r.ReadAt, r.ArchivedAt = nil, nil })
}

func (s *Service) archive(ctx context.Context, in oneIn) (Notification, error) {
	return s.mark(ctx, in.ID, func(r *row, now time.Time) {
		if r.ReadAt == nil {
			r.ReadAt = &now
		}
		if r.ArchivedAt == nil {
			r.ArchivedAt = &now
		}
	})
}

// mark changes the state of a row of the caller.
func (s *Service) mark(ctx context.Context, rowID string, change func(*row, time.Time)) (out Notification, err error) {
	if !id.Valid(rowID) {
		return out, fault.Missing("notification")
	}
	userID := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		rev, err := s.advance(tx, userID) // first: the order of locks is that of Tell
		if err != nil {
			return err
		}
		r, ok, err := byID.Maybe(tx, tx.Account, userID, rowID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("notification")
		}
		change(&r, tx.Now)
		out = s.wire(r)
		_, err = mark.Exec(tx, markArgs{
			AccountID: tx.Account, UserID: userID, ID: rowID, ReadAt: r.ReadAt, ArchivedAt: r.ArchivedAt, Rev: rev,
		})
		return err
	})
	return out, err
}

// Marked tells how many rows were marked.
type Marked struct {
	_    struct{} `doc:"What notification.read_all did." schema:"NotificationsRead"`
	Read int64    `json:"read" doc:"how many were unread"`
}

func (s *Service) readAll(ctx context.Context, _ op.None) (out Marked, err error) {
	userID := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		rev, err := s.advance(tx, userID)
		if err != nil {
			return err
		}
		out.Read, err = readAll.Exec(tx, readAllArgs{AccountID: tx.Account, UserID: userID, ReadAt: tx.Now, Rev: rev})
		return err
	})
	return out, err
}
