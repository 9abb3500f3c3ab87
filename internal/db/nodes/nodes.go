// Package nodes keeps the list of the nodes of a cluster, and which of them has the
// folder of a repository of the built-in host.
//
// A node renews its row every few seconds. Only the clock of the database counts: a
// node whose own clock is wrong by minutes is as live as the others. A node is known by
// the id in its data folder, so that it is the same one after a restart, with the same
// repositories.
//
//   - nodes.go: Registry, one node's place in the list
//   - place.go: what all nodes together may hold so many of at once
//   - count.go: what all nodes together may do so often in a minute
//   - home.go: which node has a repository
//   - store.go: the tables and their statements
package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

const (
	defaultEvery = 2 * time.Second
	// silence is the number of missing beats after which a node does not count as live.
	silence = 4
	// forgotten is how long a node stays in the list that was not seen and has no repository.
	forgotten = 7 * 24 * time.Hour
	// tidies is the time between two looks for such nodes.
	tidies = time.Hour
)

// ErrTaken means that another process goes by the id of this node.
var ErrTaken = errors.New("another server runs with a copy of this data folder; give each its own")

// Self is what a node says of itself.
type Self struct {
	ID      string // of Identity
	Name    string // for people
	Routes  string // host:port of its bus for other nodes
	Door    string // host:port at which it answers other nodes
	Boxes   string // addresses that boxes reach its bus at, with commas between
	Version string
}

// Node is a node of the list.
type Node struct {
	Self
	StartedAt, SeenAt time.Time
}

// Config configures a Registry.
type Config struct {
	DB   *db.DB
	Self Self
	// Every is the time between two beats; 2 s when 0. A node is live for four times as long.
	Every time.Duration
	// Changed is told of the live nodes, this one among them, at the start and after each beat.
	Changed func([]Node)
	// Boot is the name of this process; no other one, past or present, has the same. Empty: one is made.
	Boot string
	// Gone is told of the processes that did not stop by themselves and are gone, in the transaction that
	// found it, once each while this one runs. It may be told again of one that was only frozen.
	Gone   func(tx *db.Tx, boots []string) error
	Logger *slog.Logger
}

// Registry is the place of this node in the list.
type Registry struct {
	Config
	boot string

	mu     sync.Mutex
	live   []Node
	places map[string]*place // by name

	// Of Enter and Loop.
	gone   []string // the boots that Gone was told of
	last   int64    // when this node was last seen
	steady int      // beats since this node, or the database, was away
}

// New makes a Registry.
func New(c Config) *Registry {
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.Changed == nil {
		c.Changed = func([]Node) {}
	}
	if c.Gone == nil {
		c.Gone = func(*db.Tx, []string) error { return nil }
	}
	return &Registry{Config: c, boot: cmp.Or(c.Boot, id.New())}
}

// File is the file of a data folder that has the id of the node.
const File = "node"

// Identity is the id of the node with a data folder, which is made with the first call.
func Identity(data string) (string, error) {
	path := filepath.Join(data, File)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, []byte(id.New()+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("the id of the node: %w", err)
		}
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("the id of the node: %w", err)
	}
	own := strings.TrimSpace(string(b))
	if own == "" || strings.ContainsAny(own, " .*>\t\n") {
		return "", fmt.Errorf("the id of the node in %s is not one word", path)
	}
	return own, nil
}

// alive answers the nodes that are live, by id, if beat is the time between two beats.
func alive(tx *db.Tx, beat time.Duration) ([]Node, error) {
	now, err := clock(tx)
	if err != nil {
		return nil, err
	}
	rows, err := seenSince.All(tx, now-(silence*beat).Microseconds())
	return every(rows), err
}

// Enter puts the node into the list, and tells Config.Changed who else is live.
func (r *Registry) Enter(ctx context.Context) error {
	s := r.Self
	var all []Node
	var at int64
	err := r.DB.Write(ctx, func(tx *db.Tx) error {
		now, err := clock(tx)
		if err != nil {
			return err
		}
		at = now
		before, err := bootOf.All(tx, s.ID)
		if err != nil {
			return err
		}
		if len(before) > 0 {
			if err := r.Gone(tx, before); err != nil {
				return err
			}
		}
		if _, err := enter.Exec(tx, enterArgs{ID: s.ID, Boot: r.boot, Name: s.Name, Routes: s.Routes, Door: s.Door, Boxes: s.Boxes,
			Version: s.Version, Now: now}); err != nil {
			return err
		}
		if err := tidy(tx, now); err != nil {
			return err
		}
		all, err = alive(tx, r.Every)
		return err
	})
	if err != nil {
		return fmt.Errorf("enter the list of nodes: %w", err)
	}
	r.last = at
	r.tell(all)
	return nil
}

// Loop renews the row of the node until ctx ends. It fails with ErrTaken if another
// process has entered as this node.
func (r *Registry) Loop(ctx context.Context) error {
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	for beats := time.Duration(1); ; beats++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		in, end := observe.Pass(ctx, "node.beat")
		all, err := r.beat(in, beats%max(tidies/r.Every, 1) == 0)
		observe.Failed(in, err)
		end()
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, ErrTaken):
			return err
		case err != nil:
			r.Logger.WarnContext(ctx, "the node was not seen by the others for a moment", slog.Any("error", err))
		default:
			r.tell(all)
			r.mend(ctx)
		}
	}
}

func (r *Registry) beat(ctx context.Context, clean bool) (all []Node, err error) {
	ctx, cancel := context.WithTimeout(ctx, silence*r.Every)
	defer cancel()
	var dead []string
	var at int64
	var steady int
	err = r.DB.Write(ctx, func(tx *db.Tx) error {
		now, err := clock(tx)
		if err != nil {
			return err
		}
		at, dead, steady = now, r.gone, r.steady+1
		if now-r.last > (silence * r.Every).Microseconds() {
			steady = 0 // the others may have been kept from their beats as well
		}
		n, err := seen.Exec(tx, r.Self.ID, r.boot, now)
		if err == nil && n == 0 {
			err = ErrTaken
		}
		if err == nil && clean {
			err = tidy(tx, now)
		}
		if err != nil {
			return err
		}
		if steady >= silence {
			if dead, err = r.bury(tx, now); err != nil {
				return err
			}
		}
		all, err = alive(tx, r.Every)
		return err
	})
	if err == nil {
		r.gone, r.last, r.steady = dead, at, steady
	}
	return all, err
}

func (r *Registry) tell(all []Node) {
	r.mu.Lock()
	r.live = all
	r.mu.Unlock()
	r.Changed(slices.Clone(all))
}

// Live answers the live nodes of the last beat, this one among them, by id.
func (r *Registry) Live() []Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.live)
}

// bury tells Gone of the processes that are newly gone, and answers all that are.
func (r *Registry) bury(tx *db.Tx, now int64) (all []string, err error) {
	if all, err = silentBoots.All(tx, now-(silence*r.Every).Microseconds()); err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(slices.Clone(all), func(boot string) bool { return slices.Contains(r.gone, boot) })
	if len(fresh) > 0 {
		err = r.Gone(tx, fresh)
	}
	return all, err
}

// tidy removes the nodes that are forgotten, and what processes that are gone have held.
func tidy(tx *db.Tx, now int64) error {
	if _, err := gone.Exec(tx, now-forgotten.Microseconds()); err != nil {
		return err
	}
	_, err := gonePlaces.Exec(tx)
	return err
}

// Leave says that the node is not live any more. Its row stays for a week, and for as long as it
// has repositories.
func (r *Registry) Leave(ctx context.Context) error {
	return r.DB.Write(ctx, func(tx *db.Tx) error {
		now, err := clock(tx)
		if err != nil {
			return err
		}
		_, err = leave.Exec(tx, r.Self.ID, r.boot, now)
		return err
	})
}

// Addresses are those at which the nodes that have not stopped reach each other.
func Addresses(tx *db.Tx) (all []string, err error) {
	rows, err := addresses.All(tx)
	for _, r := range rows {
		all = append(all, r.Routes, r.Door)
	}
	return all, err
}
