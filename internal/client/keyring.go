package client

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// Keyring keeps tokens by the names and the servers of their contexts.
type Keyring interface {
	Get(name string) (string, error)
	Set(name, token string) error
	Delete(name string) error // again is no error
}

// SystemKeyring is the keyring of the person's session: the Secret Service on Linux, the
// Keychain on macOS, the Credential Manager on Windows. It is nil where there is none, or
// where YARDMASTER_KEYRING is off.
func SystemKeyring(env func(string) string) Keyring {
	if env("YARDMASTER_KEYRING") == "off" {
		return nil
	}
	if runtime.GOOS == "linux" && env("DBUS_SESSION_BUS_ADDRESS") == "" {
		// Without a session bus the library would try to start one.
		dir := env("XDG_RUNTIME_DIR")
		if _, err := os.Stat(filepath.Join(dir, "bus")); dir == "" || err != nil {
			return nil
		}
	}
	return systemRing{}
}

// service is the name under which the tokens are kept.
const service = "yardmaster"

// patience is how long a keyring may take. It may have to ask the person for a password.
const patience = time.Minute

// firstPatience is how long a keyring may take to keep a token before the file does.
const firstPatience = 10 * time.Second

type systemRing struct{}

// within calls a function of the keyring, which cannot be cancelled.
func within[T any](d time.Duration, do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		value, err := do()
		got <- answer{value, err}
	}()
	select {
	case a := <-got:
		return a.value, a.err
	case <-time.After(d):
		var none T
		return none, errors.New("the keyring does not answer")
	}
}

func (systemRing) Get(name string) (string, error) {
	return within(patience, func() (string, error) { return keyring.Get(service, name) })
}

func (systemRing) Set(name, token string) error {
	_, err := within(firstPatience, func() (struct{}, error) { return struct{}{}, keyring.Set(service, name, token) })
	return err
}

func (systemRing) Delete(name string) error {
	_, err := within(patience, func() (struct{}, error) { return struct{}{}, keyring.Delete(service, name) })
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return err
}
