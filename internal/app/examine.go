package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/blob"
	"yardmaster/internal/bus"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/id"
	"yardmaster/internal/proxies"
	"yardmaster/internal/rlimit"
)

// Finding is what was found out about one part of a deployment.
type Finding struct {
	OK   bool
	What string
	Then string // what to do about it; empty where it is well
}

const (
	partTime  = 10 * time.Second // for one part
	fewFiles  = 4096
	agreed    = 5 * time.Second     // clocks that differ more disagree
	endsSoon  = 14 * 24 * time.Hour // a certificate that ends earlier is a finding
	probeBody = "a probe of yardmaster doctor server"
)

// examination gathers findings.
type examination struct {
	*config.Config
	found []Finding
}

// say adds a finding about a part: well, or wrong with what to do about it.
func (e *examination) say(part, well string, wrong error, then string) {
	if wrong == nil {
		e.found = append(e.found, Finding{OK: true, What: part + ": " + well})
		return
	}
	e.found = append(e.found, Finding{What: part + ": " + wrong.Error(), Then: then})
}

// Examine looks at a deployment from the machine of its server: the folder, the disk, the programs it
// needs, its keys, the database, each service that the settings name, and the server itself at the
// address that people open. It changes nothing but for an object that it stores and deletes again.
func Examine(ctx context.Context, c *config.Config) []Finding {
	e := &examination{Config: c}
	for _, look := range []func(context.Context){
		e.folder, e.programs, e.keys, e.database, e.store, e.mails, e.bus, e.counts, e.collector, e.name, e.address,
	} {
		part, cancel := context.WithTimeout(ctx, partTime)
		look(part)
		cancel()
	}
	return e.found
}

func (e *examination) folder(context.Context) {
	info, err := os.Stat(e.Data)
	if err != nil {
		e.say("data folder", "", err, "name it with --data, or start the server once")
		return
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		err = fmt.Errorf("others of this machine may look into %s (mode %s)", e.Data, info.Mode().Perm())
	}
	e.say("data folder", e.Data, err, "chmod 700 "+e.Data)
	room, err := (&App{cfg: e.Config}).room()
	if err == nil {
		err = room.trouble()
	}
	e.say("disk", fmt.Sprintf("%d MiB are free, %d %% used", room.free>>20, room.percent()), err, "make room, or put the data folder on a larger disk")
}

func (e *examination) programs(ctx context.Context) {
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	e.say("git", strings.TrimSpace(string(out)), err, "install git: the built-in host is made of it")
	files := rlimit.Files()
	err = nil
	if files < fewFiles {
		err = fmt.Errorf("a process may open %d, and each connection is one", files)
	}
	e.say("open files", fmt.Sprint(files, " may be open"), err, fmt.Sprintf("ulimit -n %d where the server is started, or LimitNOFILE in its unit", fewFiles))
}

func (e *examination) keys(ctx context.Context) {
	ring, err := readKeys(ctx, e.Config)
	if err == nil && ring == nil {
		err = fmt.Errorf("there is no %s", keyPlace(e.Config))
	}
	e.say("master key", "it can be read", err, "put it back from where you keep it: without it nothing sealed opens")
}

// bus looks at the NATS servers of somebody else.
func (e *examination) bus(ctx context.Context) {
	if e.NATSServers == "" {
		return
	}
	servers := 0
	outside, err := outsideBus(e.Config)
	if err == nil {
		servers, err = bus.CheckExternal(ctx, *outside)
	}
	e.say("message bus", fmt.Sprint(servers, " servers keep the accounts of boxes"), err,
		"look at nats-servers, nats-operator-key and nats-system-creds, and whether those servers are in operator mode with resolvers of type full")
}

func (e *examination) database(ctx context.Context) {
	const then = "look at the setting database, and whether its server runs and lets this machine in"
	if _, err := exists(e.Config); err != nil {
		e.say("database", "", err, then)
		return
	}
	d, err := db.Open(ctx, e.Database, db.Options{AsIs: true})
	if err != nil {
		e.say("database", "", err, then)
		return
	}
	defer d.Close()
	e.say("database", d.Engine().String()+" answers", d.Ping(ctx), then)
	e.say("schema", "it is that of this program", d.Migrated(ctx), "start the server with this program once, or with the one that made the schema")
	var sick int64
	var at time.Time
	err = d.Read(ctx, func(tx *db.Tx) (err error) {
		at = tx.Now
		sick, err = webhook.GivenUp(tx)
		return err
	})
	if off := time.Since(at).Abs(); err == nil && d.Engine() == db.Postgres {
		e.clock("clock of the database", off)
	}
	if err == nil && sick > 0 {
		err = fmt.Errorf("%d take nothing any more, and nothing is sent to them", sick)
	}
	e.say("webhooks", "all take what they are sent", err, "yardmaster webhook list names them, for each account; yardmaster webhook revive ID sends again")
}

func (e *examination) clock(which string, off time.Duration) {
	var err error
	if off > agreed {
		err = fmt.Errorf("it and this machine's are %s apart", off.Round(time.Second))
	}
	e.say(which, "it agrees with this machine's", err, "have both follow a time server (timedatectl set-ntp true)")
}

func (e *examination) store(ctx context.Context) {
	if _, ok := e.BlobFolder(); ok || e.Blob == config.BlobOff {
		return
	}
	e.say("store of objects", "an object was stored, read and deleted", e.tryStore(ctx),
		"look at the setting blob: the bucket, its region, and what its key may do")
}

func (e *examination) tryStore(ctx context.Context) error {
	b, err := blob.ParseBucket(e.Blob)
	if err != nil {
		return err
	}
	s, err := blob.NewS3(b)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Reach(ctx); err != nil {
		return err
	}
	key := "doctor/" + id.New()
	if err := s.Put(ctx, key, strings.NewReader(probeBody), int64(len(probeBody)), "text/plain"); err != nil {
		return err
	}
	r, _, err := s.Get(ctx, key)
	if err == nil {
		var got []byte
		got, err = io.ReadAll(r)
		if r.Close(); err == nil && !bytes.Equal(got, []byte(probeBody)) {
			err = errors.New("what was read is not what was stored")
		}
	}
	return errors.Join(err, s.Delete(ctx, key))
}

func (e *examination) mails(ctx context.Context) {
	if e.SMTPURL == "" {
		return
	}
	server, err := mailServer(e.Config)
	if err == nil {
		err = server.Greet(ctx)
	}
	e.say("mail server", "it lets the server in", err, "look at the setting smtp-url: the host, its port, TLS, user and password")
}

func (e *examination) counts(ctx context.Context) {
	if e.Redis == "" {
		return
	}
	shared, err := limit.Share(e.Redis, time.Now, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(shared.Ping(ctx), shared.Close())
	}
	e.say("counts of requests", "Redis answers", err, "look at the setting redis; until then each node counts for itself")
}

func (e *examination) collector(ctx context.Context) {
	if e.OTLPEndpoint == "" {
		return
	}
	resp, err := get(ctx, e.OTLPEndpoint)
	if err == nil {
		resp.Body.Close() // any answer: it takes POST alone
	}
	e.say("collector of traces", "it answers", err, "look at the setting otlp-endpoint; until then traces are lost")
}

func (e *examination) name(ctx context.Context) {
	u, err := url.Parse(e.BaseURL)
	if e.BaseURL == "" || err != nil {
		return
	}
	at, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	e.say("name", u.Hostname()+" leads to "+strings.Join(at, ", "), err, "make it known to your name servers: it is what people and boxes open")
}

// address asks the server where people open it, and says what it says of itself.
func (e *examination) address(ctx context.Context) {
	base := e.BaseURL
	if base == "" {
		base = "http://" + e.Listen
	}
	proxies.SpareServer(ctx, base)
	resp, err := get(ctx, base+"/healthz")
	if err != nil {
		e.say("server", "", err, "is it running, and does what stands before it lead to it? yardmaster serve starts it")
		return
	}
	defer resp.Body.Close()
	var is struct {
		Status string `json:"status"`
		Checks map[string]struct {
			Status string `json:"status"`
			Detail string `json:"detail"`
		} `json:"checks"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&is); err != nil || is.Status == "" {
		e.say("server", "", fmt.Errorf("what answers at %s is no Yardmaster: %s", base, resp.Status), "look at base-url, and at what stands before the server")
		return
	}
	e.say("server", "it answers at "+base, nil, "")
	names := make([]string, 0, len(is.Checks))
	for name := range is.Checks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if c := is.Checks[name]; c.Status != "ok" {
			e.say("server", "", errors.New(strings.TrimSpace(name+" is "+c.Status+". "+c.Detail)), "the log of the server says more; "+
				"docs: The server, Trouble")
		}
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		e.clock("clock of the server", time.Since(at).Abs()-time.Second) // Date has whole seconds
	}
	if resp.TLS == nil || len(resp.TLS.PeerCertificates) == 0 {
		return
	}
	ends := resp.TLS.PeerCertificates[0].NotAfter
	if left := time.Until(ends); left < endsSoon {
		err = fmt.Errorf("it ends on %s", ends.UTC().Format(time.DateOnly))
	}
	e.say("certificate", "it is good until "+ends.UTC().Format(time.DateOnly), err, "renew it: tls-cert is read again when it changes, and acme renews by itself")
}

func get(ctx context.Context, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	var cause *url.Error
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return resp, err
}
