package box

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

type addIn struct {
	Name   string            `json:"name,omitempty" maxLength:"100" example:"build-3" doc:"name of the box; left out: what the machine calls itself"`
	Slots  *int64            `json:"slots,omitempty" minimum:"1" maximum:"256" doc:"most runs it may take at once, whatever it offers"`
	Labels map[string]string `json:"labels,omitempty" maxItems:"32" maxLength:"200" doc:"win over the labels it gives itself"`
}

// Enrollment is the answer of box.add. No other answer shows the token.
type Enrollment struct {
	_          struct{}  `doc:"A one-time token for a machine to join with."`
	ID         string    `json:"id" format:"uuid" doc:"id of the enrollment, not of the box"`
	Token      string    `json:"token" example:"dev_enr_…" doc:"the one-time token, shown this once; also in join"`
	ExpiresISO time.Time `json:"expires_iso" doc:"when the token expires, an hour after it was minted"`
	Join       string    `json:"join" example:"printf 'X-Svc-Enroll-Token: %s' dev_enr_… | curl -fsS -H @- https://yardmaster.example.com/join | sh" doc:"shell line to run on the machine"`
}

func (s *Service) add(ctx context.Context, in addIn) (out Enrollment, err error) {
	if err := checkLabels(in.Labels); err != nil {
		return out, err
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		minted, err := s.Mint(tx, Wish{Name: in.Name, Slots: in.Slots, Labels: in.Labels, By: policy.From(ctx).Label()})
		out = Enrollment{ID: minted.ID, Token: minted.Token, ExpiresISO: minted.Expires,
			Join: joinLine(op.RequestOf(ctx).BaseURL, minted.Token)}
		return err
	})
	return out, err
}

// Wish is what an enrollment says of the box that joins with it.
type Wish struct {
	Name   string
	Slots  *int64
	Labels map[string]string
	By     string // label of the actor who asked for it
}

// Minted is a one-time token.
type Minted struct {
	ID, Token string
	Expires   time.Time
}

// Mint makes an enrollment of tx.Account.
func (s *Service) Mint(tx *db.Tx, w Wish) (Minted, error) {
	m := Minted{ID: id.New(), Token: id.Secret(id.Enrollment), Expires: tx.Now.Add(enrollmentTTL).Truncate(time.Millisecond)}
	if _, err := insertEnrollment.Exec(tx, insertEnrollmentArgs{
		ID: m.ID, AccountID: tx.Account, Hash: seal.Hash(m.Token), Name: w.Name, Slots: w.Slots, Labels: labels(w.Labels),
		CreatedBy: w.By, CreatedAt: tx.Now, ExpiresAt: m.Expires,
	}); err != nil {
		return Minted{}, err
	}
	return m, mintedEvent.Record(tx, event.Subject{ID: m.ID}, enrollmentData{Expires: m.Expires, Name: w.Name})
}

// Joined answers the box of tx.Account that has joined with an enrollment; false: none has.
func (s *Service) Joined(tx *db.Tx, enrollmentID string) (boxID string, ok bool, err error) {
	return joinedWith.Maybe(tx, tx.Account, enrollmentID)
}

// CheckLabels refuses labels that no box could have.
func CheckLabels(labels map[string]string) error { return checkLabels(labels) }

func labels(m map[string]string) db.JSON[map[string]string] {
	return db.JSON[map[string]string]{V: labelsOf(m, nil)}
}

// Handed are the programs that a machine without one is given.
func (s *Service) Handed(ctx context.Context) ([]Program, error) {
	if s.Programs == nil {
		return nil, nil
	}
	return s.Programs.Handed(ctx)
}

type joinIn struct {
	Token string `json:",omitempty" header:"X-Svc-Enroll-Token" doc:"the one-time enrollment token"`
}

func (s *Service) joinScript(ctx context.Context, in joinIn) (op.Reply, error) {
	if !id.Checked(id.Enrollment, in.Token) {
		return op.Reply{}, fault.Field("X-Svc-Enroll-Token", "is not an enrollment token")
	}
	programs, err := s.Handed(ctx)
	if err != nil {
		return op.Reply{}, err
	}
	text := begin(op.RequestOf(ctx).BaseURL, in.Token, programs) + join
	return op.Reply{ContentType: "text/x-shellscript; charset=utf-8", Body: text}, nil
}

type enrollIn struct {
	Token     string            `json:",omitempty" header:"X-Svc-Enroll-Token" doc:"the one-time enrollment token"`
	PublicKey string            `json:"public_key" maxLength:"100" example:"UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4" doc:"public half of a NATS user key that the box has made"`
	Name      string            `json:"name,omitempty" maxLength:"100" example:"build-3" doc:"what the machine calls itself; the enrollment's own name wins"`
	Version   string            `json:"version,omitempty" maxLength:"100" example:"1.4.0" doc:"of the program on it"`
	OS        string            `json:"os,omitempty" maxLength:"40" example:"linux" doc:"operating system, as Go names it"`
	Arch      string            `json:"arch,omitempty" maxLength:"40" example:"amd64" doc:"processor architecture, as Go names it"`
	Slots     int64             `json:"slots,omitempty" minimum:"1" maximum:"256" doc:"runs it offers to take at once; left out: 1"`
	Labels    map[string]string `json:"labels,omitempty" maxItems:"32" maxLength:"200" example:"{\"zone\":\"eu\"}" doc:"names and values; those of the enrollment win"`
}

// Credentials prove a box's identity: run_token over HTTPS, and nats_jwt with
// the box's own key on the bus.
type Credentials struct {
	_                  struct{}  `doc:"What a box proves itself with: run_token over HTTPS, nats_jwt with its own key on the bus."`
	ID                 string    `json:"id" format:"uuid" doc:"id of the box"`
	AccountID          string    `json:"account_id" format:"uuid" doc:"the account it is enrolled under"`
	RunToken           *string   `json:"run_token" example:"dev_run_…" doc:"its durable token, shown this once; null: the one it has is still good"`
	RunTokenExpiresISO time.Time `json:"run_token_expires_iso" doc:"when the durable token expires, 30 days after it was made"`
	NATSURL            string    `json:"nats_url" format:"uri" example:"nats://yardmaster.example.com:4222" doc:"where the bus is"`
	NATSCA             *string   `json:"nats_ca_sha256" pattern:"^[0-9a-f]{64}$" example:"5f1c0a0d5c2e4f7b9a8d3e6c1b0f2a4d6e8c0b2a4f6d8e0c2b4a6f8d0e2c4b6a" doc:"SHA-256 of the certificate of the authority that the bus has to have its own from; null: one that the machine trusts, or the bus is in the clear (nats:)"`
	NATSJWT            string    `json:"nats_jwt" example:"eyJ0eXAiOiJKV1Qi…" doc:"its credential on the bus"`
	NATSJWTExpiresISO  time.Time `json:"nats_jwt_expires_iso" doc:"when that credential expires, 24 hours after it was made"`
	ReleaseKeys        []string  `json:"release_keys" example:"[\"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"]" doc:"public keys of minisign, of the programs that it may be updated to; it keeps those of its enrolment"`
}

// refused is the fault for an enrollment token that is unknown, used or
// expired, in the same words for each.
func refused() *fault.Error {
	return fault.New(fault.Invalid, "enrollment-refused", "The enrollment token is unknown, used or expired.")
}

func keyTaken() *fault.Error {
	return fault.Field("public_key", "is in use, or was revoked; make a new one")
}

func (s *Service) enroll(ctx context.Context, in enrollIn) (out Credentials, err error) {
	if !id.Checked(id.Enrollment, in.Token) {
		return out, refused()
	}
	if err := checkLabels(in.Labels); err != nil {
		return out, err
	}
	if s.Bus == nil {
		return out, unavailable()
	}
	hash, boxID, token := seal.Hash(in.Token), id.New(), id.Secret(id.RunToken)
	var account string
	err = s.DB.Write(asBox(ctx, boxID), func(tx *db.Tx) error {
		e, ok, err := enrollmentByHash.Maybe(tx, hash, tx.Now)
		if err != nil {
			return err
		}
		// Of two calls with one token, this update lets one succeed.
		n, err := redeem.Exec(tx, redeemArgs{Hash: hash, ExpiresAt: tx.Now, RedeemedAt: tx.Now, BoxID: boxID})
		if err != nil {
			return err
		}
		if ok && n > 0 {
			ok, err = e.stands(tx)
		}
		if err != nil {
			return err
		}
		if !ok || n == 0 {
			return refused()
		}
		if _, dead, err := selectRevokedKey.Maybe(tx, in.PublicKey); err != nil {
			return err
		} else if dead {
			return keyTaken()
		}
		tx.Account = e.AccountID
		if account, err = s.Bus.NewAccount(); err != nil {
			return err
		}
		if out, err = s.credentials(boxID, account, in.PublicKey); err != nil {
			return err
		}
		out.AccountID, out.RunToken = e.AccountID, &token
		out.dated(tx.Now, tx.Now.Add(runTokenTTL))
		name, slots := cmp.Or(e.Name, in.Name, "box-"+boxID[len(boxID)-6:]), slotsOf(max(in.Slots, 1), e.Slots)
		if _, err := insert.Exec(tx, insertArgs{
			ID: boxID, AccountID: e.AccountID, Name: name, Nkey: in.PublicKey, NatsAccount: account,
			TokenHash: seal.Hash(token), TokenExpiresAt: out.RunTokenExpiresISO, Version: in.Version, Os: in.OS,
			Arch: in.Arch, Slots: slots, Labels: labels(labelsOf(in.Labels, e.Labels.V)), SetSlots: e.Slots,
			SetLabels: e.Labels, CreatedAt: tx.Now,
		}); err != nil {
			return err
		}
		if err := Added.Send(tx, event.None{}); err != nil {
			return err
		}
		return enrolledEvent.Record(tx, event.Subject{ID: boxID}, enrolledData{EnrollmentID: e.ID, Name: name})
	})
	if db.IsUnique(err) {
		err = keyTaken()
	}
	if err != nil {
		return Credentials{}, err
	}
	s.letIn(ctx, out.ID, account)
	return out, nil
}

// stands tells whether the person who made an enrollment could still make it: a machine of somebody who
// was removed must not get the account's code and secrets, nor after they were added again.
func (e enrollment) stands(tx *db.Tx) (bool, error) {
	user, person := strings.CutPrefix(e.CreatedBy, "user:")
	if !person {
		return true, nil
	}
	role, ok, err := people.RoleSince(tx, e.AccountID, user, e.CreatedAt)
	if err != nil || !ok || !role.Ceiling().Has(policy.Scopes(policy.WriteRunners)) {
		return false, err
	}
	_, approved, err := people.Standing(tx, user)
	return approved, err
}

// letIn has the bus know the account of a box, which may be too early if servers of somebody else are away.
func (s *Service) letIn(ctx context.Context, boxID, account string) {
	if err := s.Bus.Admit(ctx, boxID, account); err != nil {
		s.Logger.WarnContext(ctx, "the message bus does not know the account of a box yet", slog.String("box", boxID), slog.Any("error", err))
	}
}

// credentials signs a NATS credential; dated fills in the times.
func (s *Service) credentials(boxID, account, publicKey string) (Credentials, error) {
	jwt, err := s.Bus.Issue(boxID, account, publicKey, credentialTTL)
	if err != nil {
		return Credentials{}, fmt.Errorf("sign a credential of box %s: %w", boxID, err)
	}
	c := Credentials{ID: boxID, NATSURL: s.Bus.URL(), NATSJWT: jwt, ReleaseKeys: append([]string{}, s.ReleaseKeys...)}
	if ca := s.Bus.CA(); ca != "" {
		c.NATSCA = &ca
	}
	return c, nil
}

// dated sets the times at which the credentials end. The bus signed the
// credential a little before the transaction's now, and its end is in whole
// seconds.
func (c *Credentials) dated(now, tokenEnds time.Time) {
	c.RunTokenExpiresISO = tokenEnds
	c.NATSJWTExpiresISO = now.Add(credentialTTL - 5*time.Second).Truncate(time.Second)
}

// asBox makes the box the actor of ctx, for the audit.
func asBox(ctx context.Context, boxID string) context.Context {
	return policy.With(ctx, policy.Actor{Credential: policy.Box, CredentialID: boxID, RequestID: policy.From(ctx).RequestID})
}

// bearer returns the hash of the durable token in an Authorization header, or
// fault.Unauthenticated.
func bearer(authorization string) (hash string, err error) {
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || !id.Checked(id.RunToken, token) {
		return "", policy.Unauthenticated()
	}
	return seal.Hash(token), nil
}

type callingKey struct{}

type callingBox struct {
	hash string // of the token in the request
	row
}

// admit finds the box that sends a request and makes it the actor. It returns
// fault.Unauthenticated for a bad token and fault.Forbidden for a revoked box.
func (s *Service) admit(ctx context.Context, authorization string) (context.Context, error) {
	hash, err := bearer(authorization)
	if err != nil {
		return ctx, err
	}
	b := callingBox{hash: hash}
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		b.row, _, err = caller(tx, hash, false)
		return err
	})
	ctx = asBox(ctx, b.ID)
	actor := policy.From(ctx)
	actor.AccountID = b.AccountID
	return context.WithValue(policy.With(ctx, actor), callingKey{}, b), err
}

// calling returns the box that admit has put into ctx.
func calling(ctx context.Context) (hash string, r row) {
	b, _ := ctx.Value(callingKey{}).(callingBox)
	return b.hash, b.row
}

// Actor returns the box of a durable token, for the capabilities that any
// credential may call. ok is false if token is not a durable token. It returns
// fault.Unauthenticated for one that is unknown, expired or a revoked box's.
func (s *Service) Actor(ctx context.Context, token string) (a policy.Actor, ok bool, err error) {
	if !id.Checked(id.RunToken, token) {
		return a, false, nil
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, last, err := caller(tx, seal.Hash(token), false)
		if fault.IsKind(err, fault.Forbidden) { // it is revoked, whether its row is there or not
			err = policy.Unauthenticated()
		}
		a = policy.Actor{Credential: policy.Box, CredentialID: r.ID, AccountID: r.AccountID, ExpiresAt: r.TokenExpiresAt}
		if last {
			a.ExpiresAt = *r.LastExpiresAt
		}
		return err
	})
	if err != nil {
		return policy.Actor{}, false, err
	}
	return a, true, nil
}

// caller finds the box whose durable token has the hash, and makes its account
// tx.Account. last tells that this is the previous token, whose successor has
// not been used yet. It returns fault.Unauthenticated for an unknown or expired
// token, and fault.Forbidden for a revoked box.
func caller(tx *db.Tx, hash string, lock bool) (r row, last bool, err error) {
	q := byToken
	if lock {
		q = q.ForUpdate()
	}
	r, ok, err := q.Maybe(tx, hash)
	if err != nil {
		return r, false, err
	}
	last = ok && r.TokenHash != hash
	switch {
	case !ok:
		return r, false, stranger(tx, hash)
	case r.State == Revoked:
		return r, false, revoked()
	case last && !tx.Now.Before(*r.LastExpiresAt), !last && !tx.Now.Before(r.TokenExpiresAt):
		return r, false, policy.Unauthenticated()
	}
	tx.Account = r.AccountID
	return r, last, nil
}

type credsIn struct {
	PublicKey string `json:"public_key" maxLength:"100" example:"UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4" doc:"of the box; a new one replaces the one before, which is revoked"`
}

func (s *Service) credsReissue(ctx context.Context, in credsIn) (out Credentials, err error) {
	hash, r := calling(ctx)
	if s.Bus == nil {
		return out, unavailable()
	}
	var account string
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r, last, err := caller(tx, hash, true)
		if err != nil {
			return err
		}
		newKey, newToken := in.PublicKey != r.NKey, last || r.Rotate || !fresh(r.TokenExpiresAt, tx.Now)
		if account, err = s.natsAccount(tx, r, newKey); err != nil {
			return err
		}
		if out, err = s.credentials(r.ID, account, in.PublicKey); err != nil {
			return err
		}
		out.AccountID = r.AccountID
		out.dated(tx.Now, r.TokenExpiresAt)
		if newKey {
			if err := replaceKey(tx, r, in.PublicKey); err != nil {
				return err
			}
		}
		if newToken {
			// The present token stays valid until the box has used its
			// successor, in case this answer is lost.
			until := r.TokenExpiresAt
			if last {
				until = *r.LastExpiresAt
			}
			token := id.Secret(id.RunToken)
			out.RunToken = &token
			out.dated(tx.Now, tx.Now.Add(runTokenTTL))
			if _, err := replaceToken.Exec(tx, replaceTokenArgs{
				ID: r.ID, TokenHash: seal.Hash(token), TokenExpiresAt: out.RunTokenExpiresISO, LastHash: hash,
				LastExpiresAt: until,
			}); err != nil {
				return err
			}
		} else if r.LastHash != nil {
			if _, err := forgetLast.Exec(tx, r.ID); err != nil {
				return err
			}
		}
		if !newKey && !newToken {
			return nil
		}
		return reissuedEvent.Record(tx, event.Subject{ID: r.ID}, reissuedData{NewKey: newKey, NewToken: newToken})
	})
	if db.IsUnique(err) {
		err = keyTaken()
	}
	if err != nil {
		return Credentials{}, err
	}
	s.letIn(ctx, out.ID, account)
	if in.PublicKey != r.NKey {
		// A failure is not the box's concern: Loop tries again.
		_ = s.settle(ctx, r.ID)
	}
	return out, nil
}

// natsAccount returns the account of the bus for a box's next credential: the
// present one, or a new one for a new key, and for a box that enrolled before
// each had its own.
func (s *Service) natsAccount(tx *db.Tx, r row, newKey bool) (string, error) {
	if r.NATSAccount != nil && !newKey {
		return *r.NATSAccount, nil
	}
	account, err := s.Bus.NewAccount()
	if err != nil {
		return "", err
	}
	_, err = setAccount.Exec(tx, r.ID, account)
	return account, err
}

// keysADay is how often a box may change its key in a day. Each key leaves a
// row, and an account that the bus remembers until it restarts.
const keysADay = 20

// replaceKey gives a box another key and revokes the present one. It returns
// fault.Invalid for a key that was revoked, and fault.RateLimited after
// keysADay changes.
func replaceKey(tx *db.Tx, r row, publicKey string) error {
	if _, dead, err := selectRevokedKey.Maybe(tx, publicKey); err != nil {
		return err
	} else if dead {
		return keyTaken()
	}
	if n, err := countRevokedKeys.One(tx, r.ID, tx.Now.Add(-24*time.Hour)); err != nil {
		return err
	} else if n >= keysADay {
		return fault.New(fault.RateLimited, "", "The box has changed its key too often today.")
	}
	if _, err := setKey.Exec(tx, r.ID, publicKey); err != nil {
		return err
	}
	_, err := insertRevokedKey.Exec(tx, insertRevokedKeyArgs{Nkey: r.NKey, BoxID: r.ID, Account: r.NATSAccount, RevokedAt: tx.Now})
	return err
}

type hardeningIn struct {
	Firewall     Firewall      `json:"firewall" doc:"active, inactive, absent, or unknown to the box"`
	ExposedPorts []ExposedPort `json:"exposed_ports" maxItems:"1000" doc:"what listens at addresses other than loopback"`
	Findings     []string      `json:"findings,omitempty" maxItems:"100" maxLength:"500" doc:"what else is worth knowing, for people"`
}

// HardeningReceipt is the answer of box.hardening_report.
type HardeningReceipt struct {
	_          struct{}  `doc:"That a report was kept." schema:"HardeningReceipt"`
	ID         string    `json:"id" format:"uuid" doc:"id of the box"`
	ReportedAt time.Time `json:"reported_at" doc:"when the report came"`
}

func (s *Service) hardeningReport(ctx context.Context, in hardeningIn) (out HardeningReceipt, err error) {
	hash, _ := calling(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, _, err := caller(tx, hash, true)
		if err != nil {
			return err
		}
		at := tx.Now.Truncate(time.Millisecond)
		out = HardeningReceipt{ID: r.ID, ReportedAt: at}
		h := Hardening{Firewall: in.Firewall, ExposedPorts: append([]ExposedPort{}, in.ExposedPorts...),
			Findings: append([]string{}, in.Findings...), ReportedAt: at}
		if _, err := setHardening.Exec(tx, r.ID, db.JSON[Hardening]{V: h}); err != nil {
			return err
		}
		return hardeningEvent.Record(tx, event.Subject{ID: r.ID},
			hardeningData{ExposedPorts: len(in.ExposedPorts), Firewall: string(in.Firewall)})
	})
	return out, err
}
