package codehost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// BuiltIn is the name of the host that a server is itself.
const BuiltIn = "builtin"

// ErrUnknownHost says that a repository is at a host that the server is not
// connected to.
var ErrUnknownHost = errors.New("the server is not connected to the code host")

// Hosts are the code hosts that a server is connected to, by name. Hosts is safe for
// concurrent use.
type Hosts struct {
	mu  sync.RWMutex
	all map[string]Sides
}

// Sides are the interfaces of one code host.
type Sides struct {
	Host  Host
	Forge Forge
	Feed  Feed      // nil: nothing happens at the host of which the server must be told
	Git   GitAccess // nil: the server itself answers git clients
	// Called is the name by which people at the host call the server in comments, without
	// the @; "": they cannot.
	Called string
	// People is nil for a host where people have no tokens that the server may use.
	People People
}

// NewHosts makes Hosts. It panics if a name is empty or a side is nil.
func NewHosts(all map[string]Sides) *Hosts {
	for name, s := range all {
		if name == "" || s.Host == nil || s.Forge == nil {
			panic(fmt.Sprintf("codehost: the host %q is not whole", name))
		}
	}
	return &Hosts{all: maps.Clone(all)}
}

// Keeper is a Host with work and goroutines of its own.
type Keeper interface {
	// Upkeep packs what the host keeps here, and removes what was not used since a time.
	Upkeep(ctx context.Context, now, unusedSince time.Time) error
	// Close ends the goroutines of the host. It is not used afterwards.
	Close()
}

// Keepers are the hosts that have work of their own.
func (h *Hosts) Keepers() (all []Keeper) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range h.all {
		if k, is := s.Host.(Keeper); is {
			all = append(all, k)
		}
	}
	return all
}

// Close closes the hosts that have goroutines.
func (h *Hosts) Close() {
	for _, k := range h.Keepers() {
		k.Close()
	}
}

// Set connects a host, or replaces one. A host that is replaced is closed. It panics if the name is empty or Host or
// Forge is nil.
func (h *Hosts) Set(name string, s Sides) {
	whole := NewHosts(map[string]Sides{name: s})
	h.mu.Lock()
	defer h.mu.Unlock()
	if k, is := h.all[name].Host.(Keeper); is {
		defer k.Close()
	}
	maps.Copy(h.all, whole.all)
}

// Drop disconnects a host.
func (h *Hosts) Drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, name)
}

// Feeds are the hosts that tell what happens there, by name.
func (h *Hosts) Feeds() map[string]Feed {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := map[string]Feed{}
	for name, s := range h.all {
		if s.Feed != nil {
			out[name] = s.Feed
		}
	}
	return out
}

// Git answers how the relay reaches the git of a repository; nil if the server itself
// is the host. It fails with ErrUnknownHost.
func (h *Hosts) Git(r Repo) (GitAccess, error) {
	s, err := h.sides(r)
	return s.Git, err
}

// People answers the side of a host that knows tokens of people; nil if the host has none,
// or the server is not connected to it.
func (h *Hosts) People(name string) People {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.all[name].People
}

// Called answers the name by which people at a host call the server in comments; "" if
// they cannot.
func (h *Hosts) Called(name string) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.all[name].Called
}

// WithPeople lists the names of the hosts that know tokens of people, sorted.
func (h *Hosts) WithPeople() (names []string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for name, s := range h.all {
		if s.People != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Of answers the host of a repository. It fails with ErrUnknownHost.
func (h *Hosts) Of(r Repo) (Host, error) {
	s, err := h.sides(r)
	return s.Host, err
}

// Forge answers the forge of a repository. It fails with ErrUnknownHost.
func (h *Hosts) Forge(r Repo) (Forge, error) {
	s, err := h.sides(r)
	return s.Forge, err
}

// CloneURL is the address of a repository for git clients, without credentials;
// empty if the server is not connected to its host.
func (h *Hosts) CloneURL(r Repo) string {
	s, err := h.sides(r)
	if err != nil {
		return ""
	}
	return s.Host.CloneURL(r)
}

// Shown is a host with pages about its repositories, for people.
type Shown interface {
	// WebURL is the address of the page of a repository.
	WebURL(r Repo) string
}

// WebURL is where people see a repository at its host; empty if that has no pages, or the server
// is not connected to it.
func (h *Hosts) WebURL(r Repo) string {
	s, err := h.sides(r)
	if shown, ok := s.Host.(Shown); ok && err == nil {
		return shown.WebURL(r)
	}
	return ""
}

func (h *Hosts) sides(r Repo) (Sides, error) {
	h.mu.RLock()
	s, ok := h.all[r.Host]
	h.mu.RUnlock()
	if !ok {
		return s, fmt.Errorf("%w %q, where %s is", ErrUnknownHost, r.Host, r)
	}
	return s, nil
}
