package codehost

import (
	"errors"
	"fmt"
	"maps"
)

// BuiltIn is the name of the host that a server is itself.
const BuiltIn = "builtin"

// ErrUnknownHost says that a repository is at a host that the server is not
// connected to.
var ErrUnknownHost = errors.New("the server is not connected to the code host")

// Hosts are the code hosts that a server is connected to, by name. They are given
// once, to NewHosts. Hosts is safe for concurrent use.
type Hosts struct{ all map[string]Sides }

// Sides are the two interfaces of one code host.
type Sides struct {
	Host  Host
	Forge Forge
}

// NewHosts makes Hosts. It panics if a name is empty or a side is nil.
func NewHosts(all map[string]Sides) *Hosts {
	for name, s := range all {
		if name == "" || s.Host == nil || s.Forge == nil {
			panic(fmt.Sprintf("codehost: the host %q is not whole", name))
		}
	}
	return &Hosts{maps.Clone(all)}
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

func (h *Hosts) sides(r Repo) (Sides, error) {
	s, ok := h.all[r.Host]
	if !ok {
		return s, fmt.Errorf("%w %q, where %s is", ErrUnknownHost, r.Host, r)
	}
	return s, nil
}
