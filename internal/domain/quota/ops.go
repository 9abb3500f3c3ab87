package quota

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Account and platform operator"

// Quota is what an account may have, and has.
type Quota struct {
	_          struct{}    `doc:"What an account may store and change, and what it has." schema:"AccountQuota"`
	AccountID  string      `json:"account_id" format:"uuid" doc:"id of the account"`
	Tier       people.Tier `json:"tier" doc:"what it is entitled to, which decides what operators have not set"`
	MeasuredAt *time.Time  `json:"measured_at" doc:"when it was last measured; null: not yet. What was sent since is added to record_bytes"`
	Things     []Thing     `json:"things" doc:"what is limited, always all of them in the same order"`
}

// Thing is one thing that an account has a limit of.
type Thing struct {
	_    struct{}  `doc:"One thing that an account has a limit of." schema:"AccountQuotaThing"`
	Name ThingName `json:"name" example:"git_bytes" doc:"git_bytes: of the repositories that the built-in host has; object_bytes: logs, artifacts and objects of Git LFS; record_bytes and records: texts and rows in the database; repos: of the built-in host; tokens: live personal access tokens; person_tokens: those of one person; boxes: enrolled and not revoked; writes_per_minute: by all credentials together"`
	Used *int64    `json:"used" example:"104857600" doc:"how much of it the account has; null: it is counted by person, or by the minute"`
	Most *int64    `json:"most" example:"2147483648" doc:"how much it may have; null: as much as it likes"`
	Set  bool      `json:"set" example:"false" doc:"whether an operator set that; false: it is the tier's"`
	Full bool      `json:"full" example:"false" doc:"whether one more is refused"`
}

// Settings are what operators have set of an account's quotas.
type Settings struct {
	_            struct{} `doc:"What operators have set. null: the tier's; -1: no limit." schema:"AccountQuotaSettings"`
	GitBytes     *int64   `json:"git_bytes" minimum:"-1" example:"2147483648" doc:"bytes of the repositories that the built-in host has; null or left out: the tier's; -1: no limit"`
	ObjectBytes  *int64   `json:"object_bytes" minimum:"-1" example:"null" doc:"bytes of objects outside of the database; null or left out: the tier's; -1: no limit"`
	RecordBytes  *int64   `json:"record_bytes" minimum:"-1" example:"null" doc:"bytes of texts in the database; null or left out: the tier's; -1: no limit"`
	Records      *int64   `json:"records" minimum:"-1" example:"null" doc:"rows in the database; null or left out: the tier's; -1: no limit"`
	Repos        *int64   `json:"repos" minimum:"-1" example:"100" doc:"repositories of the built-in host; null or left out: the tier's; -1: no limit"`
	Tokens       *int64   `json:"tokens" minimum:"-1" example:"null" doc:"live personal access tokens; null or left out: the tier's; -1: no limit"`
	PersonTokens *int64   `json:"person_tokens" minimum:"-1" example:"null" doc:"live personal access tokens of one person; null or left out: the tier's; -1: no limit"`
	Boxes        *int64   `json:"boxes" minimum:"-1" example:"null" doc:"boxes that are enrolled; null or left out: the tier's; -1: no limit"`
	Writes       *int64   `json:"writes_per_minute" minimum:"-1" maximum:"60000" example:"1200" doc:"calls that write, by all credentials of the account; null or left out: the tier's; -1: no limit"`
}

// Ops returns the capabilities of this package. A look of an operator is recorded.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "account.quota",
			Method:  "GET",
			Path:    "/v1/account/quota",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount),
			Summary: "What the account may store and change, and what it has",
			Doc: "Bytes and rows are measured within minutes of a change. Who is full is refused what would need more, with 507 " +
				"quota-full; an operator of the server can raise it.",
		}, s.own),
		op.New(op.Row{
			ID:      "account.quota_get",
			Method:  "GET",
			Path:    "/v1/admin/accounts/{id}/quota",
			Group:   group,
			Rule:    policy.Require(policy.AdminAccounts),
			Summary: "What an account may store and change, and what it has",
			Doc:     "For operators. The look is written to the platform's audit log with the account's id.",
		}, s.get),
		op.New(op.Row{
			ID:      "account.quota_set",
			Method:  "PUT",
			Path:    "/v1/admin/accounts/{id}/quota",
			Group:   group,
			Rule:    policy.Require(policy.AdminAccounts),
			Summary: "Set what an account may store and change",
			Doc: "Replaces all that operators have set: what is null or left out is the tier's, -1 is no limit. Nothing that is there " +
				"is removed. The change stands in the account's audit log.",
		}, s.set),
	}
}

// quota is what an account may have and has. It fails with fault.NotFound.
func quota(tx *db.Tx, account string) (out Quota, err error) {
	if !id.Valid(account) {
		return out, fault.Missing("account")
	}
	row, ok, err := state(tx, account)
	if err == nil && !ok {
		err = fault.Missing("account")
	}
	if err != nil {
		return out, err
	}
	out = Quota{AccountID: account, Tier: row.Tier, MeasuredAt: row.MeasuredAt, Things: []Thing{}}
	for _, l := range row.levels() {
		t := Thing{Name: ThingName(l.thing), Set: l.set}
		if l.most != None {
			t.Most = &l.most
		}
		if stock(l.thing) {
			t.Used, t.Full = &l.used, l.full()
		}
		out.Things = append(out.Things, t)
	}
	return out, nil
}

func (s *Service) own(ctx context.Context, _ op.None) (out Quota, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = quota(tx, tx.Account)
		return err
	})
	return out, err
}

type getIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the account"`
}

func (s *Service) get(ctx context.Context, in getIn) (out Quota, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if out, err = quota(tx, in.ID); err != nil {
			return err
		}
		return event.RecordRead(tx, event.OperatorRead{Capability: "account.quota_get", Account: in.ID})
	})
	return out, err
}

type setIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the account"`
	Settings
	Confirm bool `json:"confirm" doc:"must be true"`
}

func (s *Service) set(ctx context.Context, in setIn) (out Quota, err error) {
	if !in.Confirm {
		return out, fault.Field("confirm", "must be true")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if !id.Valid(in.ID) {
			return fault.Missing("account")
		}
		if ok, err := people.LockAccount(tx, in.ID); err != nil || !ok {
			if err == nil {
				err = fault.Missing("account")
			}
			return err
		}
		was, _, err := quotaOf.Maybe(tx, in.ID)
		if err != nil {
			return err
		}
		if _, err := saveQuota.Exec(tx, saveArgs{AccountID: in.ID, quotaRow: in.Settings.row()}); err != nil {
			return err
		}
		if _, err := sooner.Exec(tx, in.ID, tx.Micros()); err != nil {
			return err
		}
		if out, err = quota(tx, in.ID); err != nil {
			return err
		}
		tx.AfterCommit(func() { s.forget(in.ID) })
		return setEvent.Operated(tx, event.Subject{ID: in.ID, Account: in.ID}, setData{From: was.settings(), To: in.Settings}, nil)
	})
	return out, err
}

// forget has this node read an account anew.
func (s *Service) forget(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[account]; k != nil {
		k.at = time.Time{}
	}
}

func (t Settings) row() quotaRow {
	return quotaRow{
		GitBytes: t.GitBytes, ObjectBytes: t.ObjectBytes, RecordBytes: t.RecordBytes, Records: t.Records, Repos: t.Repos,
		Tokens: t.Tokens, PersonTokens: t.PersonTokens, Boxes: t.Boxes, WritesPerMinute: t.Writes,
	}
}

func (r quotaRow) settings() Settings {
	return Settings{
		GitBytes: r.GitBytes, ObjectBytes: r.ObjectBytes, RecordBytes: r.RecordBytes, Records: r.Records, Repos: r.Repos,
		Tokens: r.Tokens, PersonTokens: r.PersonTokens, Boxes: r.Boxes, Writes: r.WritesPerMinute,
	}
}
