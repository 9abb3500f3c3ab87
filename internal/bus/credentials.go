package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// Keys are the seeds that every credential of the bus descends from. They are
// secrets: the caller seals and stores them.
type Keys struct {
	OperatorSeed string `json:"operator_seed"`
	SystemSeed   string `json:"system_seed"`
	AccountSeed  string `json:"account_seed"`
	SigningSeed  string `json:"signing_seed"` // can mint boxes, and nothing but boxes
}

// NewKeys makes a fresh set.
func NewKeys() (Keys, error) {
	var k Keys
	for _, each := range []struct {
		create func() (nkeys.KeyPair, error)
		seed   *string
	}{
		{nkeys.CreateOperator, &k.OperatorSeed},
		{nkeys.CreateAccount, &k.SystemSeed},
		{nkeys.CreateAccount, &k.AccountSeed},
		{nkeys.CreateAccount, &k.SigningSeed},
	} {
		pair, err := each.create()
		if err != nil {
			return Keys{}, fmt.Errorf("bus: make keys: %w", err)
		}
		seed, err := pair.Seed()
		if err != nil {
			return Keys{}, fmt.Errorf("bus: make keys: %w", err)
		}
		*each.seed = string(seed)
	}
	return k, nil
}

// identity is Keys, parsed.
type identity struct {
	operator, system, account, signing         nkeys.KeyPair
	operatorID, systemID, accountID, signingID string // public halves
}

func (k Keys) parse() (identity, error) {
	var id identity
	for _, each := range []struct {
		name, seed string
		pair       *nkeys.KeyPair
		public     *string
		valid      func(string) bool
	}{
		{"operator", k.OperatorSeed, &id.operator, &id.operatorID, nkeys.IsValidPublicOperatorKey},
		{"system", k.SystemSeed, &id.system, &id.systemID, nkeys.IsValidPublicAccountKey},
		{"account", k.AccountSeed, &id.account, &id.accountID, nkeys.IsValidPublicAccountKey},
		{"signing", k.SigningSeed, &id.signing, &id.signingID, nkeys.IsValidPublicAccountKey},
	} {
		pair, err := nkeys.FromSeed([]byte(each.seed))
		if err != nil {
			return identity{}, fmt.Errorf("bus: %s key: %w", each.name, err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			return identity{}, fmt.Errorf("bus: %s key: %w", each.name, err)
		}
		if !each.valid(public) {
			return identity{}, fmt.Errorf("bus: %s key is of another kind", each.name)
		}
		*each.pair, *each.public = pair, public
	}
	return id, nil
}

// rootClaims are those of the operator and of the system account.
func (id identity) rootClaims() (*jwt.OperatorClaims, string, error) {
	operator := jwt.NewOperatorClaims(id.operatorID)
	operator.Name = "yardmaster"
	operator.SystemAccount = id.systemID
	signed, err := operator.Encode(id.operator)
	if err != nil {
		return nil, "", fmt.Errorf("sign the operator: %w", err)
	}
	if operator, err = jwt.DecodeOperatorClaims(signed); err != nil {
		return nil, "", fmt.Errorf("read the operator back: %w", err)
	}
	system := jwt.NewAccountClaims(id.systemID)
	system.Name = "SYS"
	signed, err = system.Encode(id.operator)
	if err != nil {
		return nil, "", fmt.Errorf("sign the system account: %w", err)
	}
	return operator, signed, nil
}

// headerRoom is what a message may hold besides its body: NATS counts headers
// into both of its size limits, protocol.MaxMessage does not.
const headerRoom = 1 << 10

// boxPermissions is all that a box may do. The server fills in the name of the
// box, which is its id, when the box connects.
func boxPermissions() jwt.UserPermissionLimits {
	const box = "{{name()}}"
	var t jwt.UserPermissionLimits
	t.Pub.Allow = jwt.StringList{
		"evt." + box + ".>",
		protocol.CallSubject(box, ">"),
		"$KV." + protocol.BucketPresence + "." + box,
		"$JS.API.CONSUMER.MSG.NEXT." + protocol.StreamCommands + "." + box,
		"$JS.ACK." + protocol.StreamCommands + "." + box + ".>",
		"$JS.ACK.*.*." + protocol.StreamCommands + "." + box + ".>", // the newer form: domain and account come first
		"$JS.API.DIRECT.GET." + protocol.StreamEvents + ".evt." + box + ".>",
	}
	t.Sub.Allow = jwt.StringList{
		"_INBOX." + box + ".>",
		protocol.ControlSubject(box, ">"),
	}
	t.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
	t.Limits.Subs = 50
	t.Limits.Data = jwt.NoLimit
	t.Limits.Payload = protocol.MaxMessage + headerRoom
	t.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket}
	return t
}

// accountJWT is the boxes' account as it is now. The caller holds b.mu, or is
// alone.
func (b *Bus) accountJWT() (string, error) {
	claims := jwt.NewAccountClaims(b.keys.accountID)
	claims.Name = "BOXES"
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
	}
	box := jwt.NewUserScope()
	box.Key = b.keys.signingID
	box.Role = "box"
	box.Template = boxPermissions()
	claims.SigningKeys.AddScopedSigner(box)
	for key, second := range b.revoked {
		claims.RevokeAt(key, time.Unix(second, 0))
	}
	signed, err := claims.Encode(b.keys.operator)
	if err != nil {
		return "", fmt.Errorf("sign the boxes' account: %w", err)
	}
	return signed, nil
}

// Issue mints the user JWT of a box for the public nkey that the box has made.
// The JWT carries no permissions of its own. For a key that was revoked within
// this second it waits for the next one, as the revocation covers all of it.
//
// Issue does not know who may have a credential: the caller does.
func (b *Bus) Issue(boxID, userPublicKey string, ttl time.Duration) (string, error) {
	if err := checkToken("box id", boxID); err != nil {
		return "", err
	}
	if !nkeys.IsValidPublicUserKey(userPublicKey) {
		return "", fault.Field("public_key", "is not the public half of a user nkey")
	}
	if ttl < time.Second {
		return "", fmt.Errorf("bus: issue: ttl %s is under a second", ttl)
	}
	if err := b.outliveRevocation(userPublicKey); err != nil {
		return "", err
	}
	claims := jwt.NewUserClaims(userPublicKey)
	claims.Name = boxID
	claims.UserPermissionLimits = jwt.UserPermissionLimits{}
	claims.IssuerAccount = b.keys.accountID
	claims.Expires = time.Now().Add(ttl).Unix()
	signed, err := claims.Encode(b.keys.signing)
	if err != nil {
		return "", fmt.Errorf("bus: issue: %w", err)
	}
	return signed, nil
}

// outliveRevocation returns in a second that the key's revocation, if it has
// one, does not cover.
func (b *Bus) outliveRevocation(key string) error {
	b.mu.Lock()
	second, ok := b.revoked[key]
	b.mu.Unlock()
	wait := time.Until(time.Unix(second+1, 0))
	if !ok || wait <= 0 {
		return nil
	}
	if wait > 2*time.Second {
		return fmt.Errorf("bus: issue: the key is revoked until %s from now", wait)
	}
	select {
	case <-time.After(wait):
		return nil
	case <-b.ctx.Done():
		return fmt.Errorf("bus: issue: %w", b.ctx.Err())
	}
}

// Revoke refuses every JWT of the key that was issued up to and including the
// second of at, and disconnects the box that uses one. It lasts until the bus is
// closed: the caller stores at, and gives it to the next Start as Revoked.
func (b *Bus) Revoke(ctx context.Context, userPublicKey string, at time.Time) error {
	if !nkeys.IsValidPublicUserKey(userPublicKey) {
		return fmt.Errorf("bus: revoke: not a user's public key: %q", userPublicKey)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revoked[userPublicKey] = max(b.revoked[userPublicKey], at.Unix())
	account, err := b.accountJWT()
	if err != nil {
		return fmt.Errorf("bus: revoke: %w", err)
	}
	if err := b.updateAccount(ctx, account); err != nil {
		return fmt.Errorf("bus: revoke: %w", err)
	}
	return nil
}

// updateAccount makes the server use the new claims at once. Revocations are
// rare, so the system account's connection is opened for each.
func (b *Bus) updateAccount(ctx context.Context, account string) error {
	system, err := b.connect(b.keys.system, "control-plane-system")
	if err != nil {
		return err
	}
	defer system.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := system.RequestWithContext(ctx, "$SYS.REQ.CLAIMS.UPDATE", []byte(account))
	if err != nil {
		return fmt.Errorf("update account claims: %w", err)
	}
	var got server.ServerAPIClaimUpdateResponse
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return fmt.Errorf("update account claims: read the answer: %w", err)
	}
	if got.Error != nil {
		return fmt.Errorf("update account claims: %s", got.Error.Description)
	}
	return nil
}

var errToken = errors.New("must be letters, digits, - and _")

// checkToken guards everything that becomes one token of a subject, or the name
// that the permission template is filled in with.
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
