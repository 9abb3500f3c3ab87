package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// headerRoom is the number of bytes that a message may hold besides its body:
// both NATS size limits include headers, protocol.MaxMessage does not.
const headerRoom = 1 << 10

// nowhere is the subject of an export that no service answers.
const nowhere = "void.>"

// NewAccount makes the name of a box's account: the public half of a new key.
// NewAccount discards the private half, because the operator signs the account's
// claims, and the signing key that all accounts of boxes name signs its users.
func (b *Bus) NewAccount() (string, error) {
	pair, err := nkeys.CreateAccount()
	if err != nil {
		return "", fmt.Errorf("bus: make an account: %w", err)
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil {
		return "", fmt.Errorf("bus: make an account: %w", err)
	}
	return public, nil
}

// accounts resolves the names of accounts to claims for the server. The claims of
// three accounts are made at the start; the claims of a box's account are made at
// each Fetch from the answer of Config.Owner. accounts stores nothing.
type accounts struct {
	bus   *Bus
	own   map[string]string // claims of the control plane's, the system's and the probe's account, by name
	probe string            // name of the probe's account
}

var _ server.AccountResolver = (*accounts)(nil)

func (b *Bus) newAccounts() (*accounts, error) {
	probe, err := b.NewAccount()
	if b.abroad != nil {
		probe, err = b.cfg.Keys.ownProbe(b.cfg.External.Node)
	}
	if err != nil {
		return nil, err
	}
	var users string
	if b.abroad != nil {
		if users, err = b.abroad.users.PublicKey(); err != nil {
			return nil, err
		}
	}
	control, err := b.keys.controlClaims(users)
	if err != nil {
		return nil, err
	}
	system := jwt.NewAccountClaims(b.keys.systemID)
	system.Name = "SYS"
	signed, err := system.Encode(b.keys.operator) // not used by somebody else's servers, which have their own
	if err != nil {
		return nil, fmt.Errorf("sign the system account: %w", err)
	}
	probed, err := b.keys.boxClaims(probe, probeBox)
	if err != nil {
		return nil, err
	}
	return &accounts{
		bus:   b,
		own:   map[string]string{b.keys.controlID: control, b.keys.systemID: signed, probe: probed},
		probe: probe,
	}, nil
}

// ownerLimit bounds one call of Config.Owner: a box that connects waits for it.
const ownerLimit = 5 * time.Second

// Fetch answers the current claims of an account. It fails with
// server.ErrMissingAccount for an account that no box may use now.
func (a *accounts) Fetch(account string) (string, error) {
	if claims, ok := a.own[account]; ok {
		return claims, nil
	}
	if !nkeys.IsValidPublicAccountKey(account) || !a.bus.open.Load() || a.bus.group.adrift.Load() {
		return "", server.ErrMissingAccount
	}
	ctx, cancel := context.WithTimeout(a.bus.ctx, ownerLimit)
	defer cancel()
	boxID, ok, err := a.bus.cfg.Owner(ctx, account)
	if err != nil {
		a.bus.log.Error("account of a box cannot be looked up", "error", err)
		return "", fmt.Errorf("look up an account: %w", err)
	}
	a.bus.mu.Lock()
	shut := a.bus.shut[account] || a.bus.out[boxID]
	if ok && !shut {
		a.bus.admitted[boxID] = account
	}
	a.bus.mu.Unlock()
	if !ok || shut {
		return "", server.ErrMissingAccount
	}
	return a.bus.keys.boxClaims(account, boxID)
}

// Store refuses claims: the resolver keeps none.
func (*accounts) Store(string, string) error { return errors.New("accounts are not stored here") }

// IsReadOnly is true: the server accepts no pushed claims.
func (*accounts) IsReadOnly() bool { return true }

// Start does nothing.
func (*accounts) Start(*server.Server) error { return nil }

// IsTrackingUpdate is false: Bus.Shut pushes changed claims to the server.
func (*accounts) IsTrackingUpdate() bool { return false }

// Check lets nobody in and is never asked. The server takes new routes from options whose
// parts are of types that it lists, and server.Authentication is one of them.
func (*accounts) Check(server.ClientAuthentication) bool { return false }

// Reload does nothing.
func (*accounts) Reload() error { return nil }

// Close does nothing.
func (*accounts) Close() {}

// controlClaims are the claims of the control plane's own account. The account
// exports the calls of boxes and the nudges to boxes, and imports nothing. users is the
// key that signs its users, if that is not its own.
func (id identity) controlClaims(users string) (string, error) {
	claims := jwt.NewAccountClaims(id.controlID)
	claims.Name = "CONTROL"
	if users != "" {
		claims.SigningKeys.Add(users)
	}
	claims.Exports.Add(
		&jwt.Export{Name: "calls", Subject: jwt.Subject(protocol.CallSubject("*", ">")), Type: jwt.Service,
			ResponseType: jwt.ResponseTypeSingleton, ResponseThreshold: callLimit},
		&jwt.Export{Name: "nudges", Subject: jwt.Subject(protocol.ControlSubject("*", ">")), Type: jwt.Stream},
		&jwt.Export{Name: "nowhere", Subject: nowhere, Type: jwt.Service},
	)
	signed, err := claims.Encode(id.operator)
	if err != nil {
		return "", fmt.Errorf("sign the control plane's account: %w", err)
	}
	return signed, nil
}

// boxClaims are the claims of a box's account: the box's calls lead out, its
// nudges lead in. A server with JetStream imports the JetStream API from the
// system account into every account; the import "nowhere" shadows that API with a
// subject that no service answers.
func (id identity) boxClaims(account, boxID string) (string, error) {
	claims := jwt.NewAccountClaims(account)
	claims.Name = boxID
	claims.Limits.AccountLimits = jwt.AccountLimits{Imports: 3, Conn: 4, DisallowBearer: true}
	claims.Limits.NatsLimits = jwt.NatsLimits{Subs: 60, Data: jwt.NoLimit, Payload: protocol.MaxMessage + headerRoom}
	calls, nudges := protocol.CallSubject(boxID, ">"), protocol.ControlSubject(boxID, ">")
	claims.Imports.Add(
		&jwt.Import{Name: "calls", Subject: jwt.Subject(calls), Account: id.controlID, Type: jwt.Service},
		&jwt.Import{Name: "nudges", Subject: jwt.Subject(nudges), Account: id.controlID, Type: jwt.Stream},
		&jwt.Import{Name: "nowhere", Subject: "void.js.>", LocalSubject: "$JS.>", Account: id.controlID, Type: jwt.Service},
	)
	scope := jwt.NewUserScope()
	scope.Key, scope.Role, scope.Template = id.signingID, "box", boxPermissions()
	claims.SigningKeys.AddScopedSigner(scope)
	signed, err := claims.Encode(id.operator)
	if err != nil {
		return "", fmt.Errorf("sign the account of box %s: %w", boxID, err)
	}
	return signed, nil
}

// boxPermissions are all permissions of a box in its account. The server fills in
// the name of the user, which is the box id, when the box connects.
func boxPermissions() jwt.UserPermissionLimits {
	const box = "{{name()}}"
	var t jwt.UserPermissionLimits
	t.Pub.Allow = jwt.StringList{protocol.CallSubject(box, ">")}
	t.Sub.Allow = jwt.StringList{"_INBOX." + box + ".>", protocol.ControlSubject(box, ">")}
	t.Limits.Subs = 50
	t.Limits.Data = jwt.NoLimit
	t.Limits.Payload = protocol.MaxMessage + headerRoom
	t.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket, jwt.ConnectionTypeInProcess}
	return t
}

// closedClaims are the claims of an account that is shut: no key may sign for it,
// no connection is allowed, and the account imports and exports nothing.
func (id identity) closedClaims(account string) (string, error) {
	claims := jwt.NewAccountClaims(account)
	claims.Name = "closed"
	claims.Limits.AccountLimits = jwt.AccountLimits{DisallowBearer: true}
	claims.Limits.NatsLimits = jwt.NatsLimits{}
	signed, err := claims.Encode(id.operator)
	if err != nil {
		return "", fmt.Errorf("sign a closed account: %w", err)
	}
	return signed, nil
}

// Issue mints the user JWT of a box, in the box's account, for the public nkey
// that the box has made. The JWT carries no permissions of its own. A ttl of zero
// lasts as long as the bus; any other ttl under a second is an error. A bad
// userPublicKey is a fault.Invalid on the field public_key.
//
// Issue does not decide which boxes may have a credential: its caller does.
func (b *Bus) Issue(boxID, account, userPublicKey string, ttl time.Duration) (string, error) {
	if err := checkToken("box id", boxID); err != nil {
		return "", err
	}
	if !nkeys.IsValidPublicUserKey(userPublicKey) {
		return "", fault.Field("public_key", "is not the public half of a user nkey")
	}
	if !nkeys.IsValidPublicAccountKey(account) {
		return "", fmt.Errorf("bus: issue: %q is no account", account)
	}
	claims := jwt.NewUserClaims(userPublicKey)
	claims.Name = boxID
	claims.UserPermissionLimits = jwt.UserPermissionLimits{}
	claims.IssuerAccount = account
	switch {
	case ttl >= time.Second:
		claims.Expires = time.Now().Add(ttl).Unix()
	case ttl != 0:
		return "", fmt.Errorf("bus: issue: ttl %s is under a second", ttl)
	}
	signed, err := claims.Encode(b.keys.signing)
	if err != nil {
		return "", fmt.Errorf("bus: issue: %w", err)
	}
	return signed, nil
}

// Shut disconnects every user of an account, and refuses the account from then
// on, until the bus is closed. By then Config.Owner must answer that no box uses
// the account. A box that connects during the call may still be admitted by an
// answer that Config.Owner gave just before; a second Shut, at least a second
// later, disconnects that box.
func (b *Bus) Shut(ctx context.Context, account string) error {
	if !nkeys.IsValidPublicAccountKey(account) {
		return fmt.Errorf("bus: shut: %q is no account", account)
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	b.mu.Lock()
	b.shut[account] = true
	maps.DeleteFunc(b.admitted, func(_, seat string) bool { return seat == account })
	b.mu.Unlock()
	// Messages that were sent to the box before reach it, if it can receive them.
	if err := b.nc.FlushTimeout(updateLimit); err != nil {
		b.log.Debug("flush before an account is shut", "error", err)
	}
	b.nextSecond(ctx, account)
	claims, err := b.keys.closedClaims(account)
	if err == nil {
		err = b.update(ctx, account, claims)
	}
	if err != nil {
		return fmt.Errorf("bus: shut: %w", err)
	}
	return nil
}

// putOut disconnects a box and refuses it for a while.
func (b *Bus) putOut(boxID string) {
	b.mu.Lock()
	account, already := b.admitted[boxID], b.out[boxID]
	if account != "" {
		b.out[boxID] = true
	}
	b.mu.Unlock()
	if account == "" || already {
		return
	}
	b.log.Warn("a box that asks far too much is put out", "box", boxID, "for", b.cfg.PutOut)
	b.tellOut(boxID)
	b.calls.also(func() { b.keepOut(boxID, account, b.change) })
}

// claims makes the claims of an account.
type claims = func(account string) (string, error)

// keepOut has change close the account of a box that is out, and open it when the time is over.
func (b *Bus) keepOut(boxID, account string, change func(boxID, account string, claims claims)) {
	change(boxID, account, b.keys.closedClaims)
	over := time.NewTimer(b.cfg.PutOut)
	defer over.Stop()
	select {
	case <-b.ctx.Done():
		return
	case <-over.C:
	}
	b.mu.Lock()
	delete(b.out, boxID)
	b.mu.Unlock()
	if b.owns(account, boxID) {
		change(boxID, account, func(account string) (string, error) { return b.keys.boxClaims(account, boxID) })
	}
}

// owns tells whether a box may use an account now: another node may have shut it.
func (b *Bus) owns(account, boxID string) bool {
	ctx, cancel := context.WithTimeout(b.ctx, ownerLimit)
	defer cancel()
	owner, ok, err := b.cfg.Owner(ctx, account)
	if err != nil && b.ctx.Err() == nil {
		b.log.Error("account of a box cannot be looked up", "error", err)
	}
	return ok && owner == boxID && err == nil
}

// change gives the account of a box other claims, unless it was shut.
func (b *Bus) change(boxID, account string, claims claims) {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.mu.Lock()
	shut := b.shut[account]
	b.mu.Unlock()
	if shut || account == "" {
		return
	}
	b.nextSecond(b.ctx, account)
	signed, err := claims(account)
	if err == nil {
		err = b.update(b.ctx, account, signed)
	}
	if err != nil && b.ctx.Err() == nil {
		b.log.Error("account of a box cannot be changed", "box", boxID, "error", err)
	}
}

var errToken = errors.New("must be letters, digits, - and _")

// checkToken refuses a text that cannot be one token of a subject or the name
// that the server fills into the permission template.
func checkToken(what, s string) error {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("bus: %s %q: %w", what, s, errToken)
		}
	}
	if s == "" {
		return fmt.Errorf("bus: %s is empty: %w", what, errToken)
	}
	return nil
}
