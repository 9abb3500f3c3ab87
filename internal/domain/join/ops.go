package join

import (
	"context"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/remote"
)

const (
	group = "Fleet boxes (runners)"
	path  = "/v1/runners/enrollments/ssh"
)

// slugNoKey is the slug of the refusal of a deployment without a key.
const slugNoKey = "no-platform-ssh-key"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadRunners), policy.Require(policy.WriteRunners)
	noKey := op.Refusal{Status: 503, Slug: slugNoKey}
	return []op.Op{
		op.New(op.Row{ID: "box.add_ssh", Method: "POST", Path: path, Group: group, Rule: write, Status: 202,
			Refuses: []op.Refusal{{Status: 409, Slug: "ssh-join-running"}, {Status: 429, Slug: "rate-limited"}, noKey},
			Summary: "Enroll a machine over SSH: the server dials in and runs the join",
			Doc: "The machine has the program on its PATH, and the line of box.ssh_key in authorized_keys. Without host_key nothing is run: " +
				"box.ssh_joins then shows the key that was seen, to be compared and named. How it went is shown there, too."}, s.add),
		op.New(op.Row{ID: "box.ssh_joins", Method: "GET", Path: path, Group: group, Rule: read,
			Paging: &op.Paging{Default: 25, Max: 100, Filters: map[string][]string{
				"state": {waiting, joining, joined, failed}, "id": nil,
			}},
			Summary: "The machines that were to be enrolled over SSH, newest first, and how it went",
			Doc:     "filter=id:ID is one. They are kept for 30 days."}, s.list),
		op.New(op.Row{ID: "box.ssh_key", Method: "GET", Path: path + "/key", Group: group, Rule: read,
			Refuses: []op.Refusal{noKey},
			Summary: "The public key by which the server proves itself to this account's machines",
			Doc:     "Each account has its own, so a machine that lets it in lets no other account in."}, s.key),
	}
}

// Join is a machine as clients see it.
type Join struct {
	_         struct{}          `doc:"A machine that the server enrolls over SSH." schema:"SSHJoin"`
	ID        string            `json:"id" format:"uuid" doc:"id of the join, not of the box"`
	Host      string            `json:"host" example:"build-3.example.com" doc:"name or address of the machine"`
	Port      int64             `json:"port" example:"22" doc:"port of its SSH server"`
	User      string            `json:"user" example:"yard" doc:"who runs the box there"`
	Name      string            `json:"name" example:"build-3" doc:"name of the box; empty: what the machine calls itself"`
	Slots     *int64            `json:"slots" example:"null" doc:"most runs it may take at once; null: what it offers"`
	Labels    map[string]string `json:"labels" example:"{}" doc:"that it is given"`
	HostKey   *string           `json:"host_key" example:"SHA256:uNiVztksCsDhcc0u9e8BrJQWH0pZBh0q2SmRbQrGwIM" doc:"the host key that was named; null: none"`
	State     State             `json:"state" doc:"joined and failed are the end"`
	Reason    *Reason           `json:"reason" example:"null" doc:"why it failed; null: it has not"`
	Detail    *string           `json:"detail" example:"null" doc:"the same for people"`
	Output    string            `json:"output" example:"The box runs." doc:"what the machine has printed, the first 4 KiB"`
	Seen      *Seen             `json:"seen" example:"null" doc:"the host key that the machine has, of host_key_unknown and host_key_changed"`
	BoxID     *string           `json:"box_id" format:"uuid" doc:"the box that it is now; null: none"`
	CreatedBy string            `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who asked for it"`
	CreatedAt time.Time         `json:"created_at" doc:"when it was asked for"`
	EndedAt   *time.Time        `json:"ended_at" example:"null" doc:"when it ended; null: it has not"`
}

// Seen is the host key of a machine.
type Seen struct {
	_           struct{} `doc:"A host key that a machine has shown." schema:"SSHHostKey"`
	Fingerprint string   `json:"fingerprint" example:"SHA256:uNiVztksCsDhcc0u9e8BrJQWH0pZBh0q2SmRbQrGwIM" doc:"as ssh-keygen -l shows it"`
	Key         string   `json:"key" example:"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ" doc:"its kind and bytes"`
}

func (r row) wire() Join {
	out := Join{
		ID: r.ID, Host: r.Host, Port: r.Port, User: r.UserName, Name: r.Name, Slots: r.Slots, Labels: r.Labels.V,
		HostKey: db.NullText(r.HostKey), State: State(r.State),
		Reason: (*Reason)(r.Reason), Detail: r.Detail, Output: r.Output, BoxID: r.BoxID, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt,
		EndedAt: r.EndedAt,
	}
	if r.Seen != nil {
		out.Seen = &Seen{Key: *r.Seen}
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(*r.Seen)); err == nil {
			out.Seen.Fingerprint = ssh.FingerprintSHA256(key)
		}
	}
	return out
}

type addIn struct {
	Host    string            `json:"host" minLength:"1" maxLength:"253" format:"hostname" example:"build-3.example.com" doc:"name or address of the machine"`
	Port    *int64            `json:"port,omitempty" minimum:"1" maximum:"65535" example:"22" doc:"of its SSH server; left out: 22"`
	User    string            `json:"user" pattern:"^[A-Za-z_][A-Za-z0-9._-]{0,63}$" example:"yard" doc:"who runs the box there"`
	HostKey string            `json:"host_key,omitempty" maxLength:"2000" example:"SHA256:uNiVztksCsDhcc0u9e8BrJQWH0pZBh0q2SmRbQrGwIM" doc:"fingerprint, or line of known_hosts; left out: it is shown and nothing is run"`
	Name    string            `json:"name,omitempty" maxLength:"100" example:"build-3" doc:"name of the box; left out: what the machine calls itself"`
	Slots   *int64            `json:"slots,omitempty" minimum:"1" maximum:"256" doc:"most runs it may take at once, whatever it offers"`
	Labels  map[string]string `json:"labels,omitempty" maxItems:"32" maxLength:"200" doc:"win over the labels it gives itself"`
}

// row is what is asked for, checked, without asking anybody outside.
func (in addIn) row(ctx context.Context) (r row, err error) {
	r = row{
		ID: id.New(), Host: strings.ToLower(strings.TrimSuffix(in.Host, ".")), Port: 22, UserName: in.User, Name: in.Name, Slots: in.Slots,
		Labels: db.JSON[map[string]string]{V: in.Labels}, URL: op.RequestOf(ctx).BaseURL, CreatedBy: policy.From(ctx).Label(),
		State: waiting,
	}
	if in.Port != nil {
		r.Port = *in.Port
	}
	if r.Labels.V == nil {
		r.Labels.V = map[string]string{}
	}
	if in.HostKey != "" {
		key, err := remote.ParseHostKey(in.HostKey)
		if err != nil {
			return r, fault.Field("host_key", err.Error())
		}
		r.HostKey = string(key)
	}
	return r, box.CheckLabels(in.Labels)
}

func (s *Service) noKey() error {
	if s.Key != nil {
		return nil
	}
	return fault.New(fault.Unavailable, slugNoKey, "This deployment has no key to dial machines with.").OnPurpose()
}

func (s *Service) add(ctx context.Context, in addIn) (out Join, err error) {
	r, err := in.row(ctx)
	if err != nil {
		return out, err
	}
	if err := s.noKey(); err != nil {
		return out, err
	}
	if wrong := s.Guard.Host(ctx, r.Host); wrong != "" {
		return out, fault.Field("host", wrong)
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := countNew.One(tx, tx.Account, db.Micros(tx.Now.Add(-time.Hour)))
		if err != nil {
			return err
		}
		if n >= anHour {
			return fault.Newf(fault.RateLimited, "", "An account may ask for %d machines an hour.", anHour).After(10 * time.Minute)
		}
		r.AccountID, r.CreatedAt = tx.Account, tx.Now
		if _, err := insert.Exec(tx, r); err != nil {
			return err
		}
		s.queue.Add(tx, r.ID, due.Entry{Account: tx.Account})
		out = r.wire()
		return askedEvent.Record(tx, event.Subject{ID: r.ID}, askedData{At: r.place().String(), HostKey: r.HostKey})
	})
	if db.IsUnique(err) {
		err = fault.Reason("ssh-join-running", "The machine is being called already. Wait for the end of that, which box.ssh_joins shows.")
	}
	return out, err
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Join], err error) {
	if one := in.Want("id"); one != "" && !id.Valid(one) {
		return out, fault.Field("filter", "id must be an id")
	}
	var rows []row
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = page(tx, in.PageIn)
		return err
	})
	return op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) }, row.wire), err
}

// PublicKey is the answer of box.ssh_key.
type PublicKey struct {
	_              struct{} `doc:"The key by which the server proves itself to machines of the account." schema:"SSHKey"`
	AuthorizedKeys string   `json:"authorized_keys" example:"restrict ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ yardmaster" doc:"the line for ~/.ssh/authorized_keys on a machine"`
	PublicKey      string   `json:"public_key" example:"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ" doc:"the key alone"`
	Fingerprint    string   `json:"fingerprint" example:"SHA256:uNiVztksCsDhcc0u9e8BrJQWH0pZBh0q2SmRbQrGwIM" doc:"of the key"`
}

func (s *Service) key(ctx context.Context, _ op.None) (out PublicKey, err error) {
	if err := s.noKey(); err != nil {
		return out, err
	}
	account := policy.From(ctx).AccountID
	signer, err := s.Key.Of(account)
	if err != nil {
		return out, err
	}
	_, here, _ := strings.Cut(op.RequestOf(ctx).BaseURL, "://")
	return PublicKey{
		AuthorizedKeys: remote.Line(signer.PublicKey(), "yardmaster@"+here), PublicKey: remote.Public(signer.PublicKey()),
		Fingerprint: ssh.FingerprintSHA256(signer.PublicKey()),
	}, nil
}
