package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nkeys"
)

// Identity is what enrollment gave this machine. It is all secrets.
type Identity struct {
	Box       string     `json:"box"`
	Account   string     `json:"account"`
	ServerURL string     `json:"server_url"`
	Seed      string     `json:"seed"` // of the nkey that the box made for itself
	RunToken  Credential `json:"run_token"`
	NATSURL   string     `json:"nats_url"`
	NATSJWT   Credential `json:"nats_jwt"`
}

// Credential is a secret that ends. Both times are of the box's clock: what the
// control plane said was turned into a duration first, as the clocks may differ.
type Credential struct {
	Value string    `json:"value"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// at is when the given part of the lifetime has passed. A clock that has been
// set back to before the beginning makes it due at once.
func (c Credential) at(now time.Time, part float64) time.Time {
	if now.Before(c.From) {
		return now
	}
	return c.From.Add(time.Duration(float64(c.Until.Sub(c.From)) * part))
}

// ErrNotEnrolled means that there is no identity in the data folder.
var ErrNotEnrolled = errors.New("this machine is not enrolled")

func identityPath(dataDir string) string { return filepath.Join(dataDir, "identity.json") }

// LoadIdentity reads the identity in a data folder, or fails with
// ErrNotEnrolled.
func LoadIdentity(dataDir string) (Identity, error) {
	var id Identity
	err := readJSON(identityPath(dataDir), &id)
	if errors.Is(err, os.ErrNotExist) {
		return id, ErrNotEnrolled
	}
	return id, err
}

// Save writes the identity to a data folder, readable by its owner alone.
func (id Identity) Save(dataDir string) error {
	if err := os.MkdirAll(dataDir, 0o711); err != nil {
		return fmt.Errorf("save the identity: %w", err)
	}
	if err := writeJSON(identityPath(dataDir), id); err != nil {
		return fmt.Errorf("save the identity: %w", err)
	}
	return nil
}

// keyring is the identity of a running box.
type keyring struct {
	dataDir string

	mu sync.Mutex
	id Identity
}

func (k *keyring) get() Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.id
}

// update changes the identity, also when that cannot be saved: what is new may
// be all that is valid.
func (k *keyring) update(change func(*Identity)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.id)
	return k.id.Save(k.dataDir)
}

// nats gives what a connection is authenticated with.
func (k *keyring) nats() (token string, seed []byte) {
	id := k.get()
	return id.NATSJWT.Value, []byte(id.Seed)
}

// sign signs with the key that the box has made for itself.
func (k *keyring) sign(statement []byte) ([]byte, error) {
	pair, err := nkeys.FromSeed([]byte(k.get().Seed))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	defer pair.Wipe()
	return pair.Sign(statement)
}

// destroy deletes the credentials for good.
func (k *keyring) destroy() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.id.Seed, k.id.RunToken, k.id.NATSJWT = "", Credential{}, Credential{}
	if err := os.Remove(identityPath(k.dataDir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete the credentials: %w", err)
	}
	return nil
}
