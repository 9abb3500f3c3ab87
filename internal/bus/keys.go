package bus

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Keys are the seeds from which every credential of the bus descends. They are
// secrets: the caller seals and stores them.
type Keys struct {
	OperatorSeed string `json:"operator_seed"`
	SystemSeed   string `json:"system_seed"`
	AccountSeed  string `json:"account_seed"` // of the control plane's own account
	SigningSeed  string `json:"signing_seed"` // can mint users of boxes' accounts, and nothing else
}

// NewKeys makes a new set of keys.
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
	operator, system, control, signing         nkeys.KeyPair
	operatorID, systemID, controlID, signingID string // public halves
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
		{"account", k.AccountSeed, &id.control, &id.controlID, nkeys.IsValidPublicAccountKey},
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

// operatorClaims are the claims of the operator, which signs every account.
func (id identity) operatorClaims() (*jwt.OperatorClaims, error) {
	operator := jwt.NewOperatorClaims(id.operatorID)
	operator.Name = "yardmaster"
	operator.SystemAccount = id.systemID
	signed, err := operator.Encode(id.operator)
	if err != nil {
		return nil, fmt.Errorf("sign the operator: %w", err)
	}
	if operator, err = jwt.DecodeOperatorClaims(signed); err != nil {
		return nil, fmt.Errorf("read the operator back: %w", err)
	}
	return operator, nil
}
