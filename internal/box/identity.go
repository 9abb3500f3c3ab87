package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
)

// Identity holds the credentials from the enrollment of this machine. All of it is
// secret.
type Identity struct {
	Box       string     `json:"box"`
	Account   string     `json:"account"`
	ServerURL string     `json:"server_url"`
	Seed      string     `json:"seed"` // of the nkey that the box made for itself
	RunToken  Credential `json:"run_token"`
	NATSURL   string     `json:"nats_url"`
	NATSCA    string     `json:"nats_ca_sha256,omitempty"` // SHA-256 of the certificate of the authority of the bus
	NATSJWT   Credential `json:"nats_jwt"`
	// ReleaseKeys are the keys of the programs that the box takes. They are those of its
	// enrolment: nothing that the control plane says later changes them.
	ReleaseKeys []string `json:"release_keys,omitempty"`
}

// Credential is a secret that expires. Both times are on the box's clock: durations
// of the control plane's are added to it, because the clocks may differ.
type Credential struct {
	Value string    `json:"value"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// at returns the time when the given part of the lifetime has passed, or now if the
// clock was set back to before From.
func (c Credential) at(now time.Time, part float64) time.Time {
	if now.Before(c.From) {
		return now
	}
	return c.From.Add(time.Duration(float64(c.Until.Sub(c.From)) * part))
}

// ErrNotEnrolled is returned when the data folder has no identity.
var ErrNotEnrolled = errors.New("this machine is not enrolled")

func identityPath(dataDir string) string { return filepath.Join(dataDir, "identity.json") }

// LoadIdentity reads the identity in a data folder. It returns ErrNotEnrolled if
// there is none.
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

// keyring guards the identity of a running box.
type keyring struct {
	dataDir string

	mu   sync.Mutex
	id   Identity
	told bool // the control plane has said in the lifetime of this process how to reach the bus
}

func (k *keyring) get() Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.id
}

// update changes the identity, even if it cannot be saved: the new credentials may
// be the only valid ones.
func (k *keyring) update(change func(*Identity)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.id)
	return k.id.Save(k.dataDir)
}

// Trust says how the bus has to prove itself to this box.
func (id Identity) Trust() conn.Trust { return conn.TrustOf(id.NATSURL, id.NATSCA) }

// trust is Identity.Trust. An address in the clear that was stored earlier is used on
// this machine alone until the control plane has said over HTTPS that it still is one:
// a box that enrolled when every bus was in the clear knows of no other.
func (k *keyring) trust() conn.Trust {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.id.Trust()
	t.Here = !t.TLS && !k.told
	return t
}

// nats returns the credential and the seed that authenticate a connection.
func (k *keyring) nats() (token string, seed []byte) {
	id := k.get()
	return id.NATSJWT.Value, []byte(id.Seed)
}

// sign signs a statement with the key that Enroll created.
func (k *keyring) sign(statement []byte) ([]byte, error) {
	pair, err := nkeys.FromSeed([]byte(k.get().Seed))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	defer pair.Wipe()
	return pair.Sign(statement)
}

// destroy deletes the credentials from memory and from the disk.
func (k *keyring) destroy() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.id.Seed, k.id.RunToken, k.id.NATSJWT = "", Credential{}, Credential{}
	if err := os.Remove(identityPath(k.dataDir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete the credentials: %w", err)
	}
	return nil
}
