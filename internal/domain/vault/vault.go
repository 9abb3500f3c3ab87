// Package vault keeps the secrets of accounts and repositories. A value arrives
// and is sealed to its place. It leaves only for the box that carries out a
// run: no answer, list, log or audit row holds one. The delivery of a secret
// says how a run gets the value. With env the agent has the value in its
// environment; with broker the box adds the value to requests to the secret's
// hosts, and the agent never sees it.
package vault

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// The limits of one vault. A run gets the secrets of two vaults, which together
// fit one message to its box.
const (
	maxSecrets = 100
	maxTotal   = 48 << 10 // bytes of all values
	maxValue   = 16 << 10
	minBroker  = 8 // bytes: shorter ones cannot be told from ordinary text in an answer
	maxHosts   = 20
)

// Secret is a secret as clients see it: without its value.
type Secret struct {
	_           struct{}          `doc:"A secret without its value." schema:"Secret"`
	Name        string            `json:"name" example:"PAYMENT_TEST_KEY" doc:"of the environment variable, or by which the broker's part of it is known"`
	Environment *string           `json:"environment" example:"null" doc:"the environment it is for; null: for all"`
	Delivery    protocol.Delivery `json:"delivery" doc:"env: the agent has it in its environment; broker: the box adds it to requests, the agent never has it"`
	Variable    *string           `json:"variable" example:"PAYMENT_TEST_KEY" doc:"environment variable of a run that holds it; null for broker"`
	Hosts       []string          `json:"hosts" example:"[]" doc:"host or host:port that the broker adds it for; empty for env"`
	Header      *string           `json:"header" example:"null" doc:"header that the broker sets; null for env"`
	Prefix      *string           `json:"prefix" example:"null" doc:"what stands before the value in that header; null for env"`
	CreatedAt   time.Time         `json:"created_at" doc:"when it was first set"`
	UpdatedAt   time.Time         `json:"updated_at" doc:"when its value was last set"`
	UpdatedBy   string            `json:"updated_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who set it last: user:<id>, pat:<id>, or fix_link:<id> for the form of a blocker"`
}

// Item is a secret to be kept.
type Item struct {
	RepoID      string // empty: of the account
	Name        string
	Environment string
	Value       string
	Delivery    protocol.Delivery // env unless given
	Hosts       []string
	Header      string // of broker: Authorization unless given
	Prefix      *string
}

// Repos finds repositories.
type Repos interface {
	// ID returns the id of a repository of tx.Account; ok is false if the
	// account has none of that name.
	ID(tx *db.Tx, owner, name string) (id string, ok bool, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB    *db.DB
	Ring  *seal.Keyring
	Repos Repos
	// Guard judges the addresses among the hosts of the broker.
	Guard *dial.Guard
}

// Service answers for secrets.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

var (
	namePattern   = lazy.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	envPattern    = lazy.New(`^[a-z0-9][a-z0-9._-]{0,39}$`)
	headerPattern = lazy.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	headerText    = lazy.New(`^[\t\x20-\x7e]*$`)
)

var (
	// perConnection are headers that belong to the connection, not to a request.
	perConnection = []string{"connection", "content-length", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
		"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)

// EnvironmentFault says why an environment cannot have a name. It is empty if
// the environment can.
func EnvironmentFault(name string) string {
	if name != "" && !envPattern.MatchString(name) {
		return "must be lower-case letters, digits, dots, hyphens or underscores, at most 40"
	}
	return ""
}

// check fills in the defaults of fields that were left out. It returns
// fault.Invalid, which names the fields, if the item cannot be stored.
func (it *Item) check(g *dial.Guard) error {
	wrong := fault.New(fault.Invalid, "", "The request has invalid fields.")
	wrong.Fields = map[string][]string{}
	add := func(field, message string) {
		if message != "" {
			wrong.Fields[field] = append(wrong.Fields[field], message)
		}
	}
	add("name", NameFault(it.Name))
	add("environment", EnvironmentFault(it.Environment))
	switch {
	case strings.TrimSpace(it.Value) == "":
		add("value", "must not be empty")
	case len(it.Value) > maxValue:
		add("value", fmt.Sprintf("must have at most %d bytes", maxValue))
	case strings.ContainsRune(it.Value, 0):
		add("value", "must not hold a NUL character")
	}
	if it.Delivery == "" {
		it.Delivery = protocol.DeliverEnv
	}
	if it.Delivery == protocol.DeliverEnv {
		if len(it.Hosts) > 0 || it.Header != "" || it.Prefix != nil {
			add("delivery", "hosts, header and prefix are for broker only")
		}
	} else {
		it.checkBroker(add, g)
	}
	if len(wrong.Fields) > 0 {
		return wrong
	}
	return nil
}

func (it *Item) checkBroker(add func(field, message string), g *dial.Guard) {
	if len(it.Hosts) == 0 {
		add("hosts", "is required for broker")
	}
	for i, h := range it.Hosts {
		it.Hosts[i] = strings.ToLower(strings.TrimSuffix(h, ":443"))
		add(fmt.Sprintf("hosts.%d", i), hostFault(it.Hosts[i], g))
	}
	if it.Header == "" {
		it.Header = "Authorization"
	}
	if !headerPattern.MatchString(it.Header) || slices.Contains(perConnection, strings.ToLower(it.Header)) {
		add("header", "must be the name of a header of a request")
	}
	if it.Prefix == nil {
		prefix := ""
		if strings.EqualFold(it.Header, "Authorization") {
			prefix = "Bearer "
		}
		it.Prefix = &prefix
	}
	if !headerText.MatchString(*it.Prefix) {
		add("prefix", "must be printable ASCII")
	}
	if it.Value = strings.TrimSpace(it.Value); it.Value != "" && (!headerText.MatchString(it.Value) || len(it.Value) < minBroker) {
		add("value", fmt.Sprintf("of a header must be printable ASCII, at least %d characters", minBroker))
	}
}

// variable names the environment variable that holds a secret: the secret's
// name and, behind two underscores, the environment that the secret is for.
func variable(name, environment string) string {
	if environment == "" {
		return name
	}
	return name + "__" + strings.Map(func(r rune) rune {
		if r == '.' || r == '-' {
			return '_'
		}
		return r
	}, strings.ToUpper(environment))
}

func purpose(account, repoID, environment, name string) string {
	return "secret/" + account + "/" + repoID + "/" + environment + "/" + name
}

// Put stores a secret of tx.Account in the place of the one of its name and
// environment. The caller writes the audit row. Put returns fault.Invalid,
// which names the field, for an item that cannot be stored, and
// fault.Unprocessable if the vault is full.
func (s *Service) Put(tx *db.Tx, by string, it Item) error {
	if err := it.check(s.Guard); err != nil {
		return err
	}
	prefix := ""
	if it.Prefix != nil {
		prefix = *it.Prefix
	}
	if it.Hosts == nil {
		it.Hosts = []string{}
	}
	sealed := s.Ring.Seal(purpose(tx.Account, it.RepoID, it.Environment, it.Name), []byte(it.Value))
	_, err := put.Exec(tx, putArgs{
		AccountID: tx.Account, RepoID: it.RepoID, Environment: it.Environment, Name: it.Name, Sealed: sealed,
		Size: len(it.Value), Delivery: it.Delivery, Hosts: db.JSON[[]string]{V: it.Hosts}, Header: it.Header,
		Prefix: prefix, CreatedAt: tx.Now, UpdatedBy: by,
	})
	if err != nil {
		return err
	}
	n, err := size.One(tx, tx.Account, it.RepoID)
	if err != nil {
		return err
	}
	if n.Count > maxSecrets || n.Total > maxTotal {
		return fault.Newf(fault.Unprocessable, "vault-full", "A vault holds %d secrets and %d bytes of values at most.", maxSecrets,
			maxTotal)
	}
	return nil
}

// PutFilled stores a value that a person filled into a form. A secret that
// exists keeps its delivery, so that an agent does not get a value of the
// broker by asking for it in a form. A new secret for a host goes to the
// broker, for that host alone. A secret that exists and is not for the host is
// refused with fault.Invalid. Other faults are those of Put.
func (s *Service) PutFilled(tx *db.Tx, by string, it Item, host string) error {
	old, ok, err := one.Maybe(tx, oneArgs{
		AccountID: tx.Account, RepoID: it.RepoID, Environment: it.Environment, Name: it.Name,
	})
	switch {
	case err != nil:
		return err
	case ok && host != "" && !slices.Contains(old.Hosts.V, strings.TrimSuffix(host, ":443")):
		return fault.Field("value", "is kept for another host by the name "+it.Name)
	case ok && old.Delivery == protocol.DeliverBroker:
		it.Delivery, it.Hosts, it.Header, it.Prefix = old.Delivery, old.Hosts.V, old.Header, &old.Prefix
	case !ok && host != "":
		it.Delivery, it.Hosts = protocol.DeliverBroker, []string{host}
	}
	return s.Put(tx, by, it)
}

// Usable holds what a run may use of its secrets, by name.
type Usable struct {
	Variables []string // environment variables
	Hosts     []string // hosts for which the broker has a credential
}

// Usable tells which secrets a run of a repository of tx.Account may use.
func (s *Service) Usable(tx *db.Tx, repoID string) (out Usable, err error) {
	rows, err := forRun.All(tx, tx.Account, repoID)
	for _, r := range rows {
		if r.Delivery == protocol.DeliverBroker {
			out.Hosts = append(out.Hosts, r.Hosts.V...)
		} else {
			out.Variables = append(out.Variables, variable(r.Name, r.Environment))
		}
	}
	slices.Sort(out.Variables)
	slices.Sort(out.Hosts)
	out.Variables, out.Hosts = slices.Compact(out.Variables), slices.Compact(out.Hosts)
	return out, err
}

// Reach tells whether tx.Account has stored a secret, and whether runs of a
// repository get one.
func Reach(tx *db.Tx, repoID string) (stored, reachable bool, err error) {
	r, err := reach.One(tx, tx.Account, repoID)
	return r.Stored > 0, r.Reachable > 0, err
}

// Masked returns a text in which mask stands for the values of secrets that runs of a
// repository of tx.Account get. Values of less than 8 bytes cannot be told from ordinary
// words and stay. Whether anything was replaced is for callers with write:secrets alone:
// to others it would tell whether a guess is right.
func (s *Service) Masked(tx *db.Tx, repoID, text, mask string) (string, error) {
	all, err := s.ForRun(tx, repoID)
	values := make([]string, 0, len(all))
	for _, v := range all {
		if value := strings.TrimSpace(string(v.Value)); len(value) >= minBroker {
			values = append(values, value)
		}
	}
	// A value may hold another one.
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, value := range values {
		text = strings.ReplaceAll(text, value, mask)
	}
	return text, err
}

// ForRun opens the secrets that a run of a repository of tx.Account gets: the
// account's, and in their place the repository's where both have a name.
func (s *Service) ForRun(tx *db.Tx, repoID string) ([]protocol.Secret, error) {
	rows, err := forRun.All(tx, tx.Account, repoID) // the account's first
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	out := []protocol.Secret{}
	for _, r := range rows {
		value, err := s.Ring.Unseal(purpose(tx.Account, r.RepoID, r.Environment, r.Name), r.Sealed)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", r.Name, err)
		}
		v := protocol.Secret{Name: variable(r.Name, r.Environment), Delivery: r.Delivery, Value: value, Hosts: r.Hosts.V, Header: r.Header,
			Prefix: r.Prefix}
		if i, ok := at[v.Name]; ok {
			out[i] = v
			continue
		}
		at[v.Name] = len(out)
		out = append(out, v)
	}
	return out, nil
}

// Values opens all secrets of tx.Account, of every repository and environment, for those
// who take them out of what leaves the server.
func (s *Service) Values(tx *db.Tx) ([]string, error) {
	rows, err := every.All(tx, tx.Account)
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		value, err := s.Ring.Unseal(purpose(tx.Account, r.RepoID, r.Environment, r.Name), r.Sealed)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", r.Name, err)
		}
		out = append(out, string(value))
	}
	return out, err
}
