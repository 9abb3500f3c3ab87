package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Login is an address and a token that the command line uses, under a name.
type Login struct {
	Name  string `json:"-"` // of the context; "" if the environment alone names the server
	URL   string `json:"url"`
	Token string `json:"token,omitempty"` // "": in the keyring
	// Keyring tells whether the system's keyring holds the token.
	Keyring bool `json:"keyring,omitempty"`
	// Account is the login of the account that the token is bound to; "" if unknown.
	Account string `json:"account,omitempty"`
}

// Logins are the contexts of a person: servers and accounts by name, and which is used
// when none is named.
type Logins struct {
	Current string           `json:"current"`
	Logins  map[string]Login `json:"contexts"`

	path string
}

// DefaultURL is the address of a server on the same machine.
const DefaultURL = "http://127.0.0.1:8080"

// ErrNoLogin is the error for somebody who has not signed in.
var ErrNoLogin = errors.New("not signed in")

// BadToken is the error of a text in YARDMASTER_TOKEN that is no token.
type BadToken struct{ has rune }

func (b BadToken) Error() string {
	return fmt.Sprintf("YARDMASTER_TOKEN has %q in it, which no token has: copy the token again, as one word", b.has)
}

// UnknownContext is the error for a name that no context has. Known are the names of those
// there are.
type UnknownContext struct {
	Name  string
	Known []string
}

func (u *UnknownContext) Error() string {
	if len(u.Known) == 0 {
		return fmt.Sprintf("there is no context %s, nor any other: run `%s`", Inert(u.Name), SignInCommand(u.Name, ""))
	}
	words := make([]string, len(u.Known))
	for i, name := range u.Known {
		words[i] = Inert(name)
	}
	return fmt.Sprintf("there is no context %s; there are %s", Inert(u.Name), strings.Join(words, ", "))
}

// SignInCommand is the command line that signs in at an address, into the context of a name.
// Without a name the context is chosen by the address; without an address a word in capitals
// stands for it.
func SignInCommand(name, address string) string {
	command := "yardmaster auth login"
	if name != "" {
		command += " --context " + Word(name)
	}
	if address == "" {
		return command + " --url ADDRESS"
	}
	return command + " --url " + Word(address)
}

// LoginFile is the path of the stored logins.
func LoginFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "yardmaster", "login.json"), nil
}

// ReadLogins reads the stored logins; there are none if there is no file. A file with one
// address and token, which earlier versions wrote, is the context named default.
func ReadLogins() (*Logins, error) {
	path, err := LoginFile()
	if err != nil {
		return nil, err
	}
	all := &Logins{path: path}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		var file struct {
			Logins
			Login
		}
		if err := json.Unmarshal(b, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all.Current, all.Logins = file.Current, file.Logins.Logins
		if all.Logins == nil && file.URL != "" {
			all.Current, all.Logins = "default", map[string]Login{"default": {URL: file.URL, Token: file.Token}}
		}
	}
	if all.Logins == nil {
		all.Logins = map[string]Login{}
	}
	return all, nil
}

// Names are the names of the contexts in the order of the alphabet.
func (l *Logins) Names() []string { return slices.Sorted(maps.Keys(l.Logins)) }

// Get is the context of a name, without its token if the keyring holds that.
func (l *Logins) Get(name string) (Login, bool) {
	of, known := l.Logins[name]
	of.Name = name
	return of, known
}

// NameFor is the name under which a login at an address is kept when nobody names one:
// that of the context with the address, else the host; "default" for the first.
func (l *Logins) NameFor(address string) string {
	if l.Logins[l.Current].URL == address {
		return l.Current
	}
	for _, name := range l.Names() {
		if l.Logins[name].URL == address {
			return name
		}
	}
	if len(l.Logins) == 0 {
		return "default"
	}
	name := address
	if u, err := url.Parse(address); err == nil {
		name = u.Host
	}
	for n := 2; ; n++ {
		if _, taken := l.Logins[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%s-%d", name, n)
	}
}

// entry names a token in the keyring: by its context and its server. The keyring is one for
// the person, while there may be several files of contexts, which anybody may edit.
func entry(name, address string) string { return name + " " + address }

// Put stores a login and makes it the current one. It puts the token into the keyring,
// or into the file if there is no keyring.
func (l *Logins) Put(of Login, ring Keyring) error {
	of.Keyring = false
	if was := l.Logins[of.Name]; was.Keyring && was.URL != of.URL && ring != nil {
		_ = ring.Delete(entry(of.Name, was.URL)) // it goes to that server alone, for which there is no context any more
	}
	if ring != nil && ring.Set(entry(of.Name, of.URL), of.Token) == nil {
		of.Token, of.Keyring = "", true
	}
	l.Logins[of.Name], l.Current = of, of.Name
	return l.save()
}

// Use makes a context the current one.
func (l *Logins) Use(name string) error {
	l.Current = name
	return l.save()
}

// Remove forgets a login.
func (l *Logins) Remove(name string, ring Keyring) error {
	if of := l.Logins[name]; of.Keyring && ring != nil {
		if err := ring.Delete(entry(name, of.URL)); err != nil {
			return err
		}
	}
	delete(l.Logins, name)
	if l.Current == name {
		l.Current = ""
		if left := l.Names(); len(left) == 1 {
			l.Current = left[0]
		}
	}
	return l.save()
}

// save writes the file, which only its owner can read.
func (l *Logins) save() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(l.path), "login-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), l.path)
}

// LoadLogin is the login to use: the context of that name, else YARDMASTER_CONTEXT, else
// the current one. YARDMASTER_URL and YARDMASTER_TOKEN take precedence when no name is
// given. A stored token goes to the server alone that it is of: with YARDMASTER_URL and no
// YARDMASTER_TOKEN it is that of the context with the address. LoadLogin fails with
// *UnknownContext if no context has the name that was given, with BadToken if YARDMASTER_TOKEN holds none, and with
// ErrNoLogin if there is no token; the answer has the address even so.
func LoadLogin(env func(string) string, name string, ring Keyring) (Login, error) {
	all, err := ReadLogins()
	if err != nil {
		return Login{}, err
	}
	address, token := "", ""
	if name == "" {
		address, token = env("YARDMASTER_URL"), strings.TrimSpace(env("YARDMASTER_TOKEN"))
		name = env("YARDMASTER_CONTEXT")
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return Login{}, BadToken{r}
		}
	}
	if address != "" {
		if address, err = Address(address); err != nil {
			return Login{}, err
		}
	}
	of, known := all.Get(all.Current)
	switch {
	case name != "":
		if of, known = all.Get(name); !known {
			return of, &UnknownContext{name, all.Names()}
		}
	case address != "" && known && of.URL != address:
		of, known = all.Get(all.NameFor(address))
	}
	if address == "" {
		address = of.URL
	}
	if address == "" {
		address = DefaultURL
	}
	switch {
	case token != "":
		return Login{Name: of.Name, URL: address, Token: token, Account: of.Account}, nil
	case !known || of.URL != address:
		return Login{URL: address}, fmt.Errorf("%w at %s: run `%s`, or set YARDMASTER_TOKEN", ErrNoLogin, address,
			SignInCommand("", address))
	}
	if of.Keyring {
		if ring == nil {
			return of, fmt.Errorf("the token of the context %s is in the system's keyring, which is not there now: "+
				"run `%s` again, or set YARDMASTER_TOKEN", of.Name, SignInCommand(of.Name, of.URL))
		}
		if of.Token, err = ring.Get(entry(of.Name, of.URL)); err != nil {
			return of, fmt.Errorf("read the token of the context %s from the system's keyring: %w", of.Name, err)
		}
	}
	if of.Token == "" {
		return of, fmt.Errorf("%w at %s: run `%s`, or set YARDMASTER_TOKEN", ErrNoLogin, of.URL, SignInCommand(of.Name, of.URL))
	}
	return of, nil
}
