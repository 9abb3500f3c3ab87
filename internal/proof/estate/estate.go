// Package estate is a NATS cluster of somebody else, for tests: servers in operator mode with full resolvers.
package estate

import (
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

// Estate is a NATS cluster of somebody else, in operator mode.
type Estate struct {
	t           testing.TB
	operator    *jwt.OperatorClaims
	token       string // of the system account
	systemKey   nkeys.KeyPair
	systemUsers nkeys.KeyPair // signs users of that
	signing     nkeys.KeyPair // of the operator
	interval    time.Duration
	options     []*server.Options
	servers     []*server.Server
}

// New runs servers whose resolvers compare what they have every so often. Strict, no account's own key signs.
func New(t testing.TB, count int, interval time.Duration, strict bool) *Estate {
	t.Helper()
	root := must(nkeys.CreateOperator())
	e := &Estate{t: t, interval: interval, systemKey: must(nkeys.CreateAccount()), signing: must(nkeys.CreateOperator())}
	operator := jwt.NewOperatorClaims(public(root))
	operator.Name, operator.SystemAccount, operator.StrictSigningKeyUsage = "theirs", public(e.systemKey), strict
	operator.SigningKeys.Add(public(e.signing))
	e.operator = must(jwt.DecodeOperatorClaims(must(operator.Encode(root))))
	system := jwt.NewAccountClaims(public(e.systemKey))
	system.Name = "SYS"
	e.systemUsers = must(nkeys.CreateAccount())
	system.SigningKeys.Add(public(e.systemUsers))
	e.token = must(system.Encode(e.signing))
	dir := t.TempDir()
	var routes []*url.URL
	for i := range count {
		client, cluster := must(url.Parse("nats://"+loopback.Address())), must(url.Parse("nats-route://"+loopback.Address()))
		routes = append(routes, cluster)
		e.options = append(e.options, &server.Options{
			ServerName: fmt.Sprintf("theirs%d", i), Host: "127.0.0.1", Port: port(client), NoSigs: true, NoLog: true,
			TrustedOperators: []*jwt.OperatorClaims{e.operator}, SystemAccount: public(e.systemKey),
			Cluster: server.ClusterOpts{Name: "theirs", Host: "127.0.0.1", Port: port(cluster)},
			// The folder of its resolver, and how often it compares: see Run.
			StoreDir: filepath.Join(dir, fmt.Sprint(i)),
		})
	}
	e.servers = make([]*server.Server, count)
	for i := range e.options {
		e.options[i].Routes = routes
		e.Run(i)
	}
	t.Cleanup(func() {
		for i := range e.servers {
			e.Stop(i)
		}
	})
	for _, s := range e.servers {
		patience.Until(t, "a server has all routes", func() bool { return s.NumRemotes() == count-1 })
	}
	return e
}

func port(u *url.URL) (n int) {
	must(fmt.Sscan(u.Port(), &n))
	return n
}

// Run starts a server, again if it was stopped.
func (e *Estate) Run(i int) {
	e.t.Helper()
	o := e.options[i].Clone()
	resolver := must(server.NewDirAccResolver(o.StoreDir, 0, e.interval, server.NoDelete))
	if err := resolver.Store(public(e.systemKey), e.token); err != nil {
		e.t.Fatal(err)
	}
	o.AccountResolver = resolver
	s := must(server.NewServer(o))
	s.Start()
	if !s.ReadyForConnections(patience.Of(e.t)) {
		e.t.Fatal("a server is not ready")
	}
	e.servers[i] = s
}

// Creds are those of a user of the system account.
func (e *Estate) Creds() string {
	user := must(nkeys.CreateUser())
	claims := jwt.NewUserClaims(public(user))
	claims.IssuerAccount = public(e.systemKey)
	token := must(claims.Encode(e.systemUsers))
	return string(must(jwt.FormatUserConfig(token, must(user.Seed()))))
}

// System is the seed of the system account.
func (e *Estate) System() string { return string(must(e.systemKey.Seed())) }

// Operator is the seed of a signing key of the operator.
func (e *Estate) Operator() string { return string(must(e.signing.Seed())) }

// Stop ends a server.
func (e *Estate) Stop(i int) {
	e.servers[i].Shutdown()
	e.servers[i].WaitForShutdown()
}

// At is the address of a server.
func (e *Estate) At(i int) string { return fmt.Sprintf("nats://127.0.0.1:%d", e.options[i].Port) }

// Foreign connects as a user of an account that is not ours.
func (e *Estate) Foreign() *nats.Conn {
	e.t.Helper()
	account := must(nkeys.CreateAccount())
	claims := jwt.NewAccountClaims(public(account))
	claims.Name = "theirs"
	for _, s := range e.servers {
		resolver := s.AccountResolver()
		if err := resolver.Store(public(account), must(claims.Encode(e.signing))); err != nil {
			e.t.Fatal(err)
		}
	}
	user := must(nkeys.CreateUser())
	token := must(jwt.NewUserClaims(public(user)).Encode(account))
	nc := must(nats.Connect(e.At(0), nats.UserJWT(func() (string, error) { return token, nil }, user.Sign)))
	e.t.Cleanup(nc.Close)
	return nc
}

func public(k nkeys.KeyPair) string { return must(k.PublicKey()) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
