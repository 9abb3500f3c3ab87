package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/box"
	"yardmaster/internal/box/coder"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// Agent is the built-in agent: an ACP agent on standard input and output.
func Agent([]string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := coder.Main(ctx, os.Stdin, os.Stdout, os.Environ()); err != nil {
		fmt.Fprintln(os.Stderr, "yardmaster agent:", err)
		return 1
	}
	return 0
}

type boxFlags struct {
	data, work, level, egress, name, limits, keys string
	slots                                         int
}

func addBoxFlags(fl *flag.FlagSet) *boxFlags {
	b := &boxFlags{}
	fl.StringVar(&b.data, "data", Env("YARDMASTER_BOX_DATA", "./yardmaster-box"),
		"folder of the box, for its identity and the events it has not sent yet (YARDMASTER_BOX_DATA)")
	fl.StringVar(&b.work, "work", os.Getenv("YARDMASTER_BOX_WORK"),
		"folder for the checkouts, homes and caches of agents; when empty, --data, or a folder in /var/lib if agents cannot enter --data (YARDMASTER_BOX_WORK)")
	fl.StringVar(&b.level, "log-level", Env("YARDMASTER_LOG_LEVEL", "info"), "debug, info, warn or error (YARDMASTER_LOG_LEVEL)")
	fl.StringVar(&b.name, "name", os.Getenv("YARDMASTER_BOX_NAME"), "name of the box; the host's when empty (YARDMASTER_BOX_NAME)")
	fl.IntVar(&b.slots, "slots", 2, "runs at once")
	fl.StringVar(&b.limits, "limits", os.Getenv("YARDMASTER_BOX_LIMITS"),
		"what one run may take, where it is not the default, comma-separated: "+strings.Join(box.LimitNames(),
			", ")+", each with =VALUE, such as memory=4GiB,processes=2000,cpu=1.5, or =none (YARDMASTER_BOX_LIMITS)")
	fl.StringVar(&b.egress, "egress", os.Getenv("YARDMASTER_BOX_EGRESS"),
		"what agents in a bubblewrap sandbox may reach besides the model: host[:port] patterns, comma-separated (YARDMASTER_BOX_EGRESS)")
	fl.StringVar(&b.keys, "release-keys", os.Getenv("YARDMASTER_BOX_RELEASE_KEYS"),
		"public keys of minisign, comma-separated, of the programs that the box may be updated to; "+
			"when empty, those it was told at its enrolment (YARDMASTER_BOX_RELEASE_KEYS)")
	return b
}

// words splits a comma-separated flag.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// Env is a variable of the environment, or what stands for one that is not set or empty.
func Env(key, otherwise string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return otherwise
}

// BoxJoin enrolls this machine, unless it is enrolled, and runs as a box. Without
// a token it mints one with the command line's own login.
func BoxJoin(fl *flag.FlagSet) tree.Action {
	address := fl.String("url", "", "address of the server; the login's when empty")
	token := fl.String("token", os.Getenv("YARDMASTER_ENROLL_TOKEN"),
		"one-time enrollment token (YARDMASTER_ENROLL_TOKEN); minted with your login when empty")
	b := addBoxFlags(fl)
	return func(ctx context.Context, _ []string) error { return joinBox(ctx, *address, *token, b) }
}

func joinBox(ctx context.Context, address, token string, b *boxFlags) error {
	if address != "" {
		server, err := signin.ServerAt(address)
		if err != nil {
			return err
		}
		address = server
	}
	id, err := box.LoadIdentity(b.data)
	switch {
	case err == nil && token == "" && (address == "" || address == id.ServerURL):
		fmt.Printf("This machine is box %s of %s already; its identity is in %s.\n", id.Box, id.ServerURL, b.data)
	case err == nil:
		return fmt.Errorf("%s is enrolled at %s already; `yardmaster box run` runs it, another --data enrolls anew", b.data, id.ServerURL)
	case !errors.Is(err, box.ErrNotEnrolled) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be used (%w): choose another folder with --data", b.data, err)
	default:
		if err := enroll(ctx, address, token, b); err != nil {
			return err
		}
	}
	return runBoxHere(ctx, b)
}

// named is the box's name: that of the flag, or else the host's.
func (b *boxFlags) named() (string, error) {
	if b.name != "" {
		return b.name, nil
	}
	return os.Hostname()
}

func enroll(ctx context.Context, address, token string, b *boxFlags) (err error) {
	cfg, err := b.config()
	if err != nil {
		return err
	}
	name := cfg.Name
	var c *client.Client
	if token == "" {
		if c, err = signin.Connect(); err != nil {
			return err
		}
		if address == "" {
			address = c.URL
		}
		if address != c.URL {
			return fmt.Errorf("your login is one of %s: sign in with `yardmaster login --url %s`, or give a --token from there",
				c.URL, address)
		}
	}
	if address == "" {
		return exit.Misuse("give the server's address with --url")
	}
	if c != nil {
		if err := namesakes(ctx, c, name); err != nil {
			return err
		}
	}
	// A machine that cannot carry out runs does not become a box, and does not use up
	// the token. If enrolling fails, undo removes the traces of the test.
	undo, err := box.Inspect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	if token == "" {
		var minted struct {
			Token string `json:"token"`
		}
		if err := c.Call(ctx, http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": name}, &minted); err != nil {
			return err
		}
		token = minted.Token
	}
	id, err := box.Enroll(ctx, strings.TrimSuffix(address, "/"), token, box.Info{Name: name, Version: This.Version, Slots: b.slots})
	if err != nil {
		return err
	}
	if err := id.Save(b.data); err != nil {
		if c != nil && c.Call(ctx, http.MethodPost, "/v1/runners/"+id.Box+"/decommission", map[string]any{}, nil) == nil {
			return fmt.Errorf("this machine is no box: %w; choose another folder with --data", err)
		}
		return fmt.Errorf("%w: choose another folder with --data, and take the box out of use with `yardmaster box decommission %s`", err, id.Box)
	}
	screen.Say("Enrolled as box %s of %s.\n", id.Box, id.ServerURL)
	return nil
}

// namesakes says that there are boxes of a name already, which those who read it could take
// for one.
func namesakes(ctx context.Context, c *client.Client, name string) error {
	var all capability.Rows[struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		State    string `json:"state"`
		Presence struct {
			Status string `json:"status"`
		} `json:"presence"`
	}]
	if err := c.Call(ctx, http.MethodGet, "/v1/runners?per_page=100", nil, &all); err != nil {
		var refusal *client.Problem
		if errors.As(err, &refusal) { // a login may enroll boxes and not read them
			return nil
		}
		return err
	}
	for _, b := range all.Data {
		if b.Name == name && b.State != "revoked" {
			fmt.Fprintf(os.Stderr, "There is a box %s already, %s, which is %s: this will be another of that name. --name tells them apart, "+
				"and yardmaster box decommission takes one away.\n", client.Inert(name), client.Inert(b.ID), client.Inert(b.Presence.Status))
			return nil
		}
	}
	return nil
}

// BoxRun is the definition of box run.
func BoxRun(fl *flag.FlagSet) tree.Action {
	b := addBoxFlags(fl)
	return func(ctx context.Context, _ []string) error { return runBoxHere(ctx, b) }
}

// config is the configuration of the box that the flags describe.
func (b *boxFlags) config() (box.Config, error) {
	name, err := b.named()
	if wrong := box.CheckLimits(b.limits); wrong != nil {
		return box.Config{}, exit.Misused("--limits: %s", wrong)
	}
	return box.Config{
		DataDir: b.data, WorkDir: b.work, Name: name, Slots: b.slots, Egress: words(b.egress), Limits: b.limits, Version: This.Version,
		Logger: logger(os.Stderr, b.level, "text"), ReleaseKeys: words(b.keys),
	}, err
}

func runBoxHere(ctx context.Context, b *boxFlags) error {
	cfg, err := b.config()
	if err != nil {
		return err
	}
	defer exitOnNextSignal(ctx, cfg.Logger)()
	err = superviseBox(ctx, cfg, b)
	if errors.Is(err, box.ErrRevoked) {
		return errors.New("this box was revoked, and its identity is deleted; `yardmaster box join` enrolls the machine anew")
	}
	if errors.Is(err, box.ErrNotEnrolled) {
		return fmt.Errorf("%s holds no identity: `yardmaster box join` enrolls this machine", b.data)
	}
	return err
}

// ListBoxes prints the boxes of the account, and those of others that may take work of it.
func ListBoxes(ctx context.Context) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	var p capability.Rows[struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		State    string `json:"state"`
		Slots    int    `json:"slots"`
		Presence struct {
			Status  string  `json:"status"`
			Version string  `json:"version"`
			Active  int     `json:"active"`
			Unfit   *string `json:"unfit"`
		} `json:"presence"`
		Agents []struct {
			Name    string  `json:"name"`
			Version string  `json:"version"`
			Missing *string `json:"missing"`
		} `json:"capabilities"`
		Isolation []string            `json:"isolation"`
		Holds     map[string][]string `json:"isolation_holds"`
	}]
	var others capability.Rows[outsideBox]
	if err := c.Call(ctx, http.MethodGet, "/v1/runners", nil, &p); err != nil {
		return err
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/runners?filter=outside:true", nil, &others); err != nil {
		return err
	}
	var rows [][]string
	var unfit []string
	holding := map[string][]string{} // names of boxes, by the protections of their levels
	for _, r := range p.Data {
		if levels := isolation(r.Isolation, r.Holds); levels != "" && r.State != "revoked" {
			holding[levels] = append(holding[levels], client.Inert(r.Name))
		}
		presence := r.Presence.Status
		if r.Presence.Unfit != nil {
			if presence == "online" {
				presence = "unfit"
			}
			unfit = append(unfit, client.Inert(r.Name)+" takes no work: "+client.Inert(*r.Presence.Unfit))
		}
		slots := strconv.Itoa(r.Presence.Active) + "/" + strconv.Itoa(r.Slots)
		rows = append(rows, []string{table.Cell(r.ID, table.ID, time.Time{}).Text, r.Name, r.State, presence, slots,
			r.Presence.Version})
	}
	screen.Table("ID\tNAME\tSTATE\tPRESENCE\tBUSY\tVERSION", rows, "yardmaster box join")
	say := func(line string) { screen.Wrapped(os.Stdout, screen.Out(), "", line) } // which is not cut
	for _, r := range p.Data {
		if r.State == "revoked" {
			continue
		}
		var has []string
		for _, a := range r.Agents {
			if a.Missing == nil {
				has = append(has, strings.TrimSpace(client.Inert(a.Name)+" "+client.Inert(a.Version)))
			}
		}
		if len(has) > 0 {
			say(client.Inert(r.Name) + " has the agents " + strings.Join(has, ", "))
		}
		for _, a := range r.Agents {
			if a.Missing != nil {
				say(client.Inert(r.Name) + " cannot use " + client.Inert(a.Name) + ": " + client.Inert(*a.Missing))
			}
		}
	}
	for _, line := range unfit {
		say(line)
	}
	for _, levels := range slices.Sorted(maps.Keys(holding)) {
		say(strings.Join(holding[levels], ", ") + " can isolate by")
		for line := range strings.SplitSeq(levels, "\n") {
			level, held, _ := strings.Cut(line, " holds ")
			for part := range client.Broken("holds "+held, screen.Out().Width-len(level)-1) {
				fmt.Println(level, part)
				level = strings.Repeat(" ", len(level))
			}
		}
	}
	listOutside(others.Data)
	return nil
}

// outsideBox is a box of another account that may take work of this one.
type outsideBox struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Presence struct {
		Status string `json:"status"`
		Active int    `json:"active"`
	} `json:"presence"`
	Outside struct {
		Account string     `json:"account"`
		Agreed  *time.Time `json:"agreed_at"`
		Given   []string   `json:"given"`
	} `json:"outside"`
}

// listOutside prints the boxes of other accounts, if there are some.
func listOutside(all []outsideBox) {
	if len(all) == 0 {
		return
	}
	var rows [][]string
	for _, b := range all {
		why := "shared with every account"
		if b.Outside.Agreed != nil {
			why = "its owner agreed " + b.Outside.Agreed.Format(time.DateOnly)
		}
		rows = append(rows, []string{table.Cell(b.ID, table.ID, time.Time{}).Text, b.Name, b.Outside.Account, b.Presence.Status,
			strconv.Itoa(b.Presence.Active), why})
	}
	fmt.Println("\nBoxes of other accounts that may take work of this one")
	screen.Table("ID\tNAME\tACCOUNT\tPRESENCE\tOF YOURS\tWHY", rows, "")
	screen.Wrapped(os.Stdout, screen.Out(), "", "Each is given, for what it takes: "+client.Inert(strings.Join(all[0].Outside.Given, ", "))+
		". A check gets no model token.")
}

// isolation lists the protections that each level of a box had when the box last
// tested it, a level on each line of at most 80 columns.
func isolation(levels []string, holds map[string][]string) string {
	out := make([]string, len(levels))
	for i, l := range levels {
		out[i] = fmt.Sprintf("  %-10s holds %s", client.Inert(l), client.Inert(cmp.Or(strings.Join(holds[l], ", "), "nothing")))
	}
	return strings.Join(out, "\n")
}
