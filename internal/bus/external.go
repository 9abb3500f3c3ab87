package bus

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// External has the bus use servers of somebody else in the place of one of its own: a NATS cluster in operator
// mode, whose servers have full resolvers. The bus writes the accounts of boxes there and empties those that
// no box may use any more. It deletes none: an account that is deleted comes back from a server that was away.
type External struct {
	Node    string // of several buses that use the same servers, each has its own
	Servers string // nats://HOST:PORT or tls://HOST:PORT, with commas between
	// Operator is the seed of the operator that the servers trust, or of a signing key of it.
	Operator string
	Creds    string // of a user of the system account, as nsc writes it
	// Owners and May are those of Cluster: a server that was away when a box was revoked lets it in until
	// its resolver has asked the others.
	Owners func(ctx context.Context) (map[string]string, error)
	May    func(ctx context.Context, boxID string) (bool, error)
	Sweep  time.Duration // between two comparisons with Owners; 0 is 30 s
}

// abroad is what a bus knows of the servers of External.
type abroad struct {
	token   string // JWT of the user of the system account
	user    nkeys.KeyPair
	users   nkeys.KeyPair // signs users of the control plane's account
	servers atomic.Int64  // that keep accounts

	mu      sync.Mutex
	pushed  map[string]time.Time // accounts, within the last second
	known   map[string]bool      // accounts that were compared, and whether a box may use them
	strange map[string]bool      // accounts that are not ours
}

const (
	// quiet is how long servers say nothing more before those that have answered count as all.
	quiet = time.Second
	// pushLimit bounds a comparison of all accounts.
	pushLimit = 10 * time.Minute
)

// parse reads the keys that are given, and puts them in the place of the bus's own.
func (e *External) parse(keys Keys, id *identity) (*abroad, error) {
	operator, err := nkeys.FromSeed([]byte(strings.TrimSpace(e.Operator)))
	if err != nil {
		return nil, fmt.Errorf("the operator's key: %w", err)
	}
	public, err := operator.PublicKey()
	if err != nil || !nkeys.IsValidPublicOperatorKey(public) {
		return nil, errors.New("the operator's key is of another kind: its seed begins with SO")
	}
	out := &abroad{pushed: map[string]time.Time{}, known: map[string]bool{}, strange: map[string]bool{}}
	if out.token, err = jwt.ParseDecoratedJWT([]byte(e.Creds)); err != nil {
		return nil, fmt.Errorf("the credentials of the system account: %w", err)
	}
	if out.user, err = jwt.ParseDecoratedUserNKey([]byte(e.Creds)); err != nil {
		return nil, fmt.Errorf("the credentials of the system account: %w", err)
	}
	claims, err := jwt.DecodeUserClaims(out.token)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the system account: %w", err)
	}
	if out.users, err = keys.users(); err != nil {
		return nil, err
	}
	id.operator, id.operatorID, id.systemID = operator, public, claims.Issuer
	if claims.IssuerAccount != "" {
		id.systemID = claims.IssuerAccount
	}
	return out, nil
}

// users is the key that signs users of the control plane's account at somebody else's servers: an operator may
// ask that no account's own key does.
func (k Keys) users() (nkeys.KeyPair, error) {
	sum := sha256.Sum256([]byte("users " + k.AccountSeed))
	return nkeys.FromRawSeed(nkeys.PrefixByteAccount, sum[:])
}

// ownProbe is the account of Ping at somebody else's servers: always the same, so that they keep no more of them.
func (k Keys) ownProbe(node string) (string, error) {
	sum := sha256.Sum256([]byte("probe " + node + " " + k.AccountSeed))
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteAccount, sum[:])
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// reach connects to the servers' system account and gives them the accounts that the control plane has.
func (b *Bus) reach(a *accounts) (err error) {
	sign := func(nonce []byte) ([]byte, error) { return b.abroad.user.Sign(nonce) }
	b.system, err = b.dial("control-plane-system", nats.UserJWT(func() (string, error) { return b.abroad.token, nil }, sign))
	if err != nil {
		return fmt.Errorf("the system account of nats-servers: %w", err)
	}
	if _, err := b.listed(b.ctx); err != nil {
		return err
	}
	for _, account := range []string{b.keys.controlID, a.probe} {
		if err := b.push(b.ctx, account, a.own[account]); err != nil {
			return err
		}
	}
	return nil
}

// each asks all servers, and passes on the answers until there are as many as enough says, or nobody has
// answered for a while.
func (b *Bus) each(ctx context.Context, subject string, body []byte, enough func() int64, answer func(data []byte) error) error {
	inbox := b.system.NewRespInbox()
	sub, err := b.system.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if the connection is gone, and then there is none
	if err := b.system.PublishRequest(subject, inbox, body); err != nil {
		return err
	}
	for n := int64(0); n < enough(); n++ {
		wait, done := ctx, context.CancelFunc(func() {})
		if n > 0 {
			wait, done = context.WithTimeout(ctx, quiet)
		}
		m, err := sub.NextMsgWithContext(wait)
		done()
		if err != nil && n > 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil // the others are away, and compare when they are back
		}
		if err == nil {
			err = answer(m.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listed answers the accounts that a server has, and whether all have them, and counts the servers.
func (b *Bus) listed(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, updateLimit)
	defer cancel()
	has, servers := map[string]int64{}, int64(0)
	err := b.each(ctx, "$SYS.REQ.CLAIMS.LIST", nil, func() int64 { return servers + 1 }, func(data []byte) error {
		var got struct {
			Data []string `json:"data"`
		}
		if err := json.Unmarshal(data, &got); err != nil {
			return err
		}
		servers++
		for _, account := range got.Data {
			has[account]++
		}
		return nil
	})
	switch {
	case err != nil && servers == 0:
		return nil, fmt.Errorf("list the accounts of nats-servers, which have to be in operator mode with full resolvers: %w", err)
	case err != nil:
		return nil, fmt.Errorf("list the accounts of nats-servers: %w", err)
	}
	b.abroad.servers.Store(servers)
	out := map[string]bool{}
	for account, n := range has {
		out[account] = n == servers
	}
	return out, nil
}

// nextSecond waits until claims that are made now are dated later than those that this node has pushed: a server
// that was away takes from the others what is newer, by the second.
func (b *Bus) nextSecond(ctx context.Context, account string) {
	if b.abroad == nil {
		return
	}
	b.abroad.mu.Lock()
	last := b.abroad.pushed[account]
	b.abroad.mu.Unlock()
	if wait := time.Until(last.Truncate(time.Second).Add(time.Second)); wait > 0 {
		late := time.NewTimer(wait)
		defer late.Stop()
		select {
		case <-late.C:
		case <-ctx.Done():
		}
	}
}

// push gives all servers claims of an account.
func (b *Bus) push(ctx context.Context, account, claims string) error {
	ctx, cancel := context.WithTimeout(ctx, updateLimit)
	defer cancel()
	b.abroad.mu.Lock()
	delete(b.abroad.known, account)
	maps.DeleteFunc(b.abroad.pushed, func(_ string, at time.Time) bool { return time.Since(at) > time.Second })
	b.abroad.pushed[account] = time.Now()
	b.abroad.mu.Unlock()
	err := b.each(ctx, "$SYS.REQ.CLAIMS.UPDATE", []byte(claims), b.abroad.servers.Load, func(data []byte) error {
		var got server.ServerAPIClaimUpdateResponse
		if err := json.Unmarshal(data, &got); err != nil {
			return err
		}
		if got.Error != nil {
			return errors.New(got.Error.Description)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("give nats-servers the claims of an account: %w", err)
	}
	return nil
}

// look answers the claims that a server has of an account; nil: it has none, or none that can be read.
func (b *Bus) look(ctx context.Context, account string) (*jwt.AccountClaims, error) {
	ctx, cancel := context.WithTimeout(ctx, updateLimit)
	defer cancel()
	m, err := b.system.RequestWithContext(ctx, "$SYS.REQ.ACCOUNT."+account+".CLAIMS.LOOKUP", nil)
	if err != nil {
		return nil, fmt.Errorf("look an account up at nats-servers: %w", err)
	}
	if claims, err := jwt.DecodeAccountClaims(string(m.Data)); err == nil {
		return claims, nil
	}
	return nil, nil
}

// Admit has somebody else's servers let a box in with an account that it may use by now. A server of the
// bus's own asks by itself.
func (b *Bus) Admit(ctx context.Context, boxID, account string) error {
	if b.abroad == nil {
		return nil
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	b.mu.Lock()
	b.admitted[boxID] = account
	no := b.shut[account] || b.out[boxID]
	b.mu.Unlock()
	if no || !b.owns(account, boxID) {
		return nil
	}
	claims, err := b.keys.boxClaims(account, boxID)
	if err == nil {
		err = b.push(ctx, account, claims)
	}
	if err != nil {
		return fmt.Errorf("bus: admit: %w", err)
	}
	return nil
}

// compare gives the servers the accounts of boxes that they lack, and empties those of ours that no box may use.
func (b *Bus) compare() error {
	ctx, cancel := context.WithTimeout(b.ctx, pushLimit)
	defer cancel()
	listed, err := b.listed(ctx) // before the owners: whatever is listed had one then, or has none any more
	if err != nil {
		return err
	}
	owners, err := b.cfg.External.Owners(ctx)
	if err != nil {
		return err
	}
	for _, account := range slices.Sorted(maps.Keys(owners)) {
		if err := b.compareOwned(ctx, account, owners[account], listed[account]); err != nil {
			return err
		}
	}
	for _, account := range slices.Sorted(maps.Keys(listed)) {
		if _, owned := owners[account]; owned || account == b.keys.controlID || account == b.keys.systemID || account == b.ownProbe {
			continue
		}
		if err := b.compareUnowned(ctx, account); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bus) compareOwned(ctx context.Context, account, boxID string, listed bool) error {
	b.mu.Lock()
	b.admitted[boxID] = account
	b.mu.Unlock()
	b.abroad.mu.Lock()
	open := b.abroad.known[account]
	b.abroad.mu.Unlock()
	if listed && open {
		return nil
	}
	if listed {
		has, err := b.look(ctx, account)
		if err != nil {
			return err
		}
		listed = b.ours(has)
	}
	if !listed {
		if err := b.Admit(ctx, boxID, account); err != nil {
			return err
		}
	}
	b.abroad.note(account, listed)
	return nil
}

// note remembers what was found out about an account.
func (a *abroad) note(account string, open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[account] = open
}

// ours tells whether claims are those of a box of this control plane.
func (b *Bus) ours(has *jwt.AccountClaims) bool {
	return has != nil && has.Issuer == b.keys.operatorID && has.Name != probeBox &&
		slices.ContainsFunc(has.Imports, func(i *jwt.Import) bool { return i.Account == b.keys.controlID })
}

// compareUnowned empties an account that is ours and of no box.
func (b *Bus) compareUnowned(ctx context.Context, account string) error {
	b.abroad.mu.Lock()
	open, known := b.abroad.known[account]
	strange := b.abroad.strange[account]
	b.abroad.mu.Unlock()
	if strange || known && !open {
		return nil
	}
	has, err := b.look(ctx, account)
	if err != nil {
		return err
	}
	if !b.ours(has) { // or emptied already
		b.abroad.mu.Lock()
		defer b.abroad.mu.Unlock()
		b.abroad.strange[account] = true
		return nil
	}
	b.log.Warn("a box that may not is cut off", "box", has.Name, "because", "nats-servers had its account")
	if err := b.Shut(ctx, account); err != nil {
		return err
	}
	b.abroad.note(account, false)
	return nil
}

// watchAbroad compares again and again until the bus closes.
func (b *Bus) watchAbroad() {
	tick := time.NewTicker(b.cfg.External.Sweep)
	defer tick.Stop()
	for {
		if err := b.compare(); err != nil && b.ctx.Err() == nil {
			b.log.Warn("the accounts of nats-servers were not compared with the database", "error", err)
		}
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// CheckExternal tells how many servers answer, with the credentials that are given.
func CheckExternal(ctx context.Context, e External) (servers int, err error) {
	b := &Bus{cfg: Config{External: &e}}
	b.ctx, b.cancel = context.WithCancel(ctx)
	defer b.cancel()
	if b.abroad, err = e.parse(Keys{}, &b.keys); err != nil {
		return 0, err
	}
	options := []nats.Option{nats.Timeout(updateLimit),
		nats.UserJWT(func() (string, error) { return b.abroad.token, nil }, b.abroad.user.Sign)}
	if b.system, err = nats.Connect(e.Servers, append(options, e.options()...)...); err != nil {
		return 0, err
	}
	defer b.system.Close()
	_, err = b.listed(ctx)
	return int(b.abroad.servers.Load()), err
}

// options are those of connections to the servers. Nothing is said before the handshake, as boxes want it.
func (e *External) options() []nats.Option {
	if strings.HasPrefix(e.Servers, "tls://") {
		return []nats.Option{nats.Secure(), nats.TLSHandshakeFirst()}
	}
	return nil
}
