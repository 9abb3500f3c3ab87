package queue

import (
	"slices"
	"strings"
	"testing"
	"time"
	"yardmaster/internal/domain/task"

	"pgregory.net/rapid"

	_ "yardmaster/internal/proof/chance" // seeds rapid
	"yardmaster/internal/protocol"
)

// Whatever the facts, a pending task has a hold or an online box that fits it.
func TestHeldOrClaimable(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	agents := []string{"claude", "codex", "builtin"}
	sandboxes := []string{"", Best, "none", "landlock", "bubblewrap"}
	rapid.Check(t, func(t *rapid.T) {
		f := &facts{Now: now, Seats: rapid.Int64Range(0, 2).Draw(t, "seats"), InFlight: rapid.Int64Range(0, 2).Draw(t, "in flight"),
			Disabled: map[string]task.Repo{}, Needs: map[string]Need{}, repos: map[string]task.Repo{"repo": {Owner: "acme", Name: "web"}}}
		if rapid.Bool().Draw(t, "disabled") {
			f.Disabled["repo"] = task.Repo{ID: "repo"}
		}
		if rapid.Bool().Draw(t, "template") {
			f.Needs["default"] = Need{Agent: rapid.SampledFrom(agents).Draw(t, "agent"),
				Isolation:     rapid.SampledFrom(sandboxes).Draw(t, "least"),
				NoKey:         rapid.SampledFrom([]string{"", "", "of the provider google"}).Draw(t, "no key"),
				WrongProvider: rapid.SampledFrom([]string{"", "", "google"}).Draw(t, "wrong provider"),
				Rest:          rapid.SampledFrom([]Rest{{}, {Since: now.Add(-time.Minute), Until: now.Add(time.Minute)}}).Draw(t, "rest"),
				Lent: rapid.SampledFrom(
					[]map[string]Rest{nil, {"repo": {}}, {"repo": {Until: now.Add(time.Second)}}}).Draw(t, "lent"),
				Own:     rapid.SampledFrom([][]string{nil, {"bob"}, {"ann"}}).Draw(t, "own"),
				NoModel: rapid.SampledFrom([]bool{false, false, true}).Draw(t, "no model")}
		}
		for range rapid.IntRange(0, 3).Draw(t, "boxes") {
			f.Boxes = append(f.Boxes, Box{
				Target:   rapid.SampledFrom([]string{"org", "shared", "user"}).Draw(t, "target"),
				OwnerID:  rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "owner"),
				Enrolled: rapid.Bool().Draw(t, "enrolled"), Online: rapid.Bool().Draw(t, "online"),
				Unfit: rapid.SampledFrom([]string{"", "", "No room."}).Draw(t, "unfit"),
				UnfitFor: rapid.SampledFrom([]map[string]string{nil, {"acme/api": "No."}, {"acme/web": "A cache is damaged."}}).Draw(t,
					"unfit for"),
				AccountID: rapid.SampledFrom([]string{"acme", "rival"}).Draw(t, "account"),
				Slots:     rapid.Int64Range(0, 2).Draw(t, "slots"), Busy: rapid.Int64Range(0, 2).Draw(t, "busy"),
				Agents:    rapid.SliceOfN(rapid.SampledFrom(agents), 0, 2).Draw(t, "agents"),
				Isolation: rapid.SliceOfN(rapid.SampledFrom(sandboxes[2:]), 0, 2).Draw(t, "isolation"),
			})
		}
		ann := "ann"
		row := &task.Row{ID: "t", AccountID: "acme", RepoID: "repo", Template: "default", RequestedBy: &ann, QueuedAt: now.Add(-time.Hour),
			Kind:        rapid.SampledFrom([]string{task.KindWork, task.KindCI}).Draw(t, "kind"),
			WaitingDeps: rapid.Int64Range(0, 1).Draw(t, "deps"),
			NotBefore:   now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "not before")) * time.Minute)}
		holds := f.holds(row)
		claimable := slices.ContainsFunc(f.Boxes, func(b Box) bool { return b.Online && f.fits(&b, row) })
		if claimable == (len(holds) > 0) {
			t.Fatalf("claimable: %v, holds: %v", claimable, holds)
		}
		for _, h := range holds {
			if h.Since.After(now) || h.ClearsWhen == "" || h.Reason == "" {
				t.Fatalf("hold says too little: %+v", h)
			}
			// Of the boxes that serve the task and take work, all are unfit.
			all := slices.DeleteFunc(slices.Clone(f.Boxes), func(b Box) bool { return !b.Online || !b.Enrolled || !b.serves(row) })
			unfit := len(all) > 0 && !slices.ContainsFunc(all, func(b Box) bool { return b.Unfit == "" && b.UnfitFor["acme/web"] == "" })
			if about := []string{task.HoldNoBox, task.HoldDraining, task.HoldUnfit, task.HoldAgent, task.HoldIsolation,
				task.HoldBusy}; slices.Contains(about, h.Reason) && (h.Reason == task.HoldUnfit) != unfit {
				t.Fatalf("%s, and all boxes are unfit: %v", h.Reason, unfit)
			}
		}
	})
}

// A demand is met by a level that is at least that and held, when it was tried,
// what its name promises; none is met by all, and by nobody who has not said.
func TestWhoIsolatesWell(t *testing.T) {
	t.Parallel()
	all := protocol.Isolated
	for name, x := range map[string]struct {
		box  Box
		meet string // of "none", "best", "landlock", "bubblewrap"
	}{
		"nothing said":            {Box{}, ""},
		"none":                    {Box{Isolation: []string{"none"}}, "none"},
		"none, a member's own":    {Box{Isolation: []string{"none"}, Target: "user"}, "none best"},
		"nothing said, one's own": {Box{Target: "user"}, ""},
		"bubblewrap that holds": {Box{Isolation: []string{"bubblewrap", "none"}, Holds: map[string][]string{"bubblewrap": all}},
			"none best landlock bubblewrap"},
		"landlock that holds": {Box{Isolation: []string{"landlock", "none"},
			Holds: map[string][]string{"landlock": append([]string{"kernel"}, all...)}}, "none best landlock"},
		"landlock without signals": {Box{Isolation: []string{"landlock", "none"},
			Holds: map[string][]string{"landlock": {"files", "unix_sockets", "network"}}}, "none best"},
		"landlock, untold": {Box{Isolation: []string{"landlock", "none"}}, "none best"},
		"the worse of two holds": {Box{Isolation: []string{"bubblewrap", "landlock"},
			Holds: map[string][]string{"bubblewrap": all[1:], "landlock": all}}, "none best landlock"},
		"another's holds": {Box{Isolation: []string{"landlock"}, Holds: map[string][]string{"bubblewrap": all}}, "none best"},
	} {
		var meets []string
		for _, least := range []string{"none", Best, "landlock", "bubblewrap"} {
			if x.box.isolates(Need{Isolation: least}) {
				meets = append(meets, least)
			}
		}
		if got := strings.Join(meets, " "); got != x.meet {
			t.Errorf("%s meets %q, want %q", name, got, x.meet)
		}
		if x.box.isolates(Need{}) != x.box.isolates(Need{Isolation: Best}) {
			t.Errorf("%s: an empty demand is not the best", name)
		}
	}
}

// None has to be said by a template or a policy file, and is not held against
// the other's silence.
func TestStricter(t *testing.T) {
	t.Parallel()
	for _, x := range [][3]string{
		{"", "", Best}, {Best, "", Best}, {"", Best, Best}, {"none", "", "none"}, {Best, "none", "none"}, {"none", "none", "none"},
		{"none", "landlock", "landlock"}, {"landlock", Best, "landlock"}, {"bubblewrap", "landlock", "bubblewrap"},
		{"", "bubblewrap", "bubblewrap"},
	} {
		if got := Stricter(x[0], x[1]); got != x[2] {
			t.Errorf("%q and %q: %q, want %q", x[0], x[1], got, x[2])
		}
	}
}

// What has to be repaired is named, unless it is another account's.
func TestRepaired(t *testing.T) {
	t.Parallel()
	box := func(account, name, why string) Box { return Box{ID: name, Name: name, AccountID: account, Unfit: why} }
	for want, boxes := range map[string][]Box{
		"the fault of the box desk is repaired: No room.": {box("acme", "desk", "No room.")},
		"the fault of one of 3 boxes is repaired; the fault of the box a: No namespaces.": {box("acme", "c", "x"),
			box("acme", "a", "No namespaces."), box("rival", "0", "z")},
		"the fault of a box that another account has enrolled is repaired": {box("rival", "desk", "No room.")},
	} {
		if got := repaired("acme", boxes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An agent that lacks what drives it is none; the hold says what that is, to
// those whose machine it is.
func TestAgentWithoutItsAdapter(t *testing.T) {
	t.Parallel()
	r := boxRow{ID: "b", Name: "shed", AccountID: "acme", OwnerTarget: "shared", State: "enrolled", Presence: "online", Slots: 1}
	r.Agents.V = []protocol.AgentInfo{{Name: "codex", Version: "2.6.0"},
		{Name: "claude", Missing: "/usr/bin/claude is here without its adapter."}}
	r.Isolation.V = []string{"none"}
	b := r.box()
	f := &facts{Seats: 1, Boxes: []Box{b}}
	for account, want := range map[string]string{
		"acme":  "an online box has the agent claude; on the box shed, /usr/bin/claude is here without its adapter.",
		"rival": "an online box has the agent claude: `yardmaster box agents`, called on a box, says how it gets it",
	} {
		h := f.fleet(&task.Row{AccountID: account}, Need{Agent: "claude", Isolation: "none"})
		if h == nil || h.Reason != task.HoldAgent || h.ClearsWhen != want {
			t.Errorf("%s: %+v", account, h)
		}
	}
	if h := f.fleet(&task.Row{AccountID: "acme"}, Need{Agent: "codex", Isolation: "none"}); h != nil {
		t.Errorf("codex is held back: %+v", h)
	}
}
