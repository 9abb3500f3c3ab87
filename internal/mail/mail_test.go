package mail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M) {
	if step := os.Getenv(envStep); step != "" {
		victim(step)
	}
	dbtest.Main(m)
}

// The headers by which programs and people deal with what a machine has written.
func TestHeaders(t *testing.T) {
	t.Parallel()
	l := Letter{
		ID: "01a2", From: "Yard <yard@example.com>", ReplyTo: "Help <help@example.com>", At: time.Unix(1_800_000_000, 0),
		Message: Message{
			To: "bob@example.com", Subject: "x", Text: "x", List: "task_done", Thread: "task/1",
			Unsubscribe: "https://yard.example/unsubscribe?token=x",
		},
	}
	head := func(l Letter) netmail.Header {
		raw, err := l.bytes()
		if err != nil {
			t.Fatal(err)
		}
		m, err := netmail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		return m.Header
	}
	got := head(l)
	for name, want := range map[string]string{
		"Message-Id": "<01a2@example.com>", "Reply-To": `"Help" <help@example.com>`, "List-Id": "<task_done.notifications.example.com>",
		"Auto-Submitted": "auto-generated", "List-Unsubscribe": "<https://yard.example/unsubscribe?token=x>",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "In-Reply-To": got.Get("References"), "Subject": "x",
	} {
		if got.Get(name) != want {
			t.Errorf("%s is %q", name, got.Get(name))
		}
	}
	if of := got.Get("References"); !strings.HasSuffix(of, "@example.com>") {
		t.Errorf("References is %q", of)
	}
	second := l
	second.ID = "01a3"
	if head(second).Get("References") != got.Get("References") {
		t.Error("mails of one thread refer to two")
	}
	// A thread of one person tells nobody of another's.
	second.To = "eve@example.com"
	if head(second).Get("References") == got.Get("References") {
		t.Error("two people share the name of a thread")
	}
	for _, name := range []string{"Reply-To", "List-Id", "List-Unsubscribe", "List-Unsubscribe-Post", "In-Reply-To", "References"} {
		if of := head(Letter{ID: "1", From: l.From, Message: Message{To: l.To, Subject: "x", Text: "x"}}).Get(name); of != "" {
			t.Errorf("a mail without a list has %s: %q", name, of)
		}
	}
}

func TestStatements(t *testing.T) { dbtest.Declared(t) }

type state struct {
	State     string
	Tries     int
	Sealed    string
	LastError *string
}

var openMails = db.Q[string](`SELECT id FROM mails WHERE state = 'due'`)

// open lists the mails that are not sent.
func (o *office) open() (ids []string) {
	o.t.Helper()
	err := o.DB.Read(o.t.Context(), func(tx *db.Tx) (err error) {
		ids, err = openMails.All(tx)
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return ids
}

var stateOf = db.Q[state](`SELECT state, tries, sealed, last_error FROM mails`)

// office is an outbox with a clock that the test sets.
type office struct {
	*Outbox
	t     *testing.T
	clock *atomic.Int64 // microseconds
}

func onBoth(t *testing.T, transport Transport, fn func(*testing.T, *office)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			ring := seal.New()
			o := &office{t: t, clock: new(atomic.Int64)}
			o.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return time.UnixMicro(o.clock.Load()) }})
			o.Outbox = &Outbox{
				DB: d, Hub: event.NewHub(), Ring: ring, Transport: transport, From: "Yardmaster <yard@example.com>",
				Logger: slog.New(slog.DiscardHandler),
			}
			fn(t, o)
		})
	}
}

var welcome = Message{To: "bob@example.com", Subject: "Grüße",
	Text: "Open this once:\n\nhttp://127.0.0.1/x?a=b&secret=" + strings.Repeat("long", 40) + "\n"}

func (o *office) post(m Message) {
	o.t.Helper()
	if err := o.DB.Write(o.t.Context(), func(tx *db.Tx) error { return o.Post(tx, m) }); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) run() {
	o.t.Helper()
	if err := o.Pass(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) state() (s state) {
	o.t.Helper()
	err := o.DB.Read(o.t.Context(), func(tx *db.Tx) (err error) {
		s, err = stateOf.One(tx)
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func TestFolder(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		folder := Folder{filepath.Join(t.TempDir(), "mail")}
		o.Transport = folder
		if all, err := folder.List(); err != nil || len(all) != 0 {
			t.Errorf("a folder that is not there: %v, %v", all, err)
		}
		m := welcome
		o.post(m)
		if s := o.state(); s.State != due || strings.Contains(s.Sealed, "secret") {
			t.Errorf("posted: %+v", s)
		}
		o.run()
		all, err := folder.List()
		if err != nil || len(all) != 1 {
			t.Fatalf("%d letters, %v", len(all), err)
		}
		if l := all[0]; l.Message != m || l.From != "yard@example.com" || l.At.Unix() != 1_800_000_000 {
			t.Errorf("the letter is %+v", l)
		}
		if s := o.state(); s.State != sent || s.Sealed != "" {
			t.Errorf("sent: %+v", s)
		}
		if err := folder.Send(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
		if all, err = folder.List(); err != nil || len(all) != 1 {
			t.Errorf("the same letter again makes %d, %v", len(all), err)
		}
	})
}

// A mail is stored if, and only if, its cause is stored.
func TestPostIsPartOfItsCause(t *testing.T) {
	t.Parallel()
	onBoth(t, Folder{t.TempDir()}, func(t *testing.T, o *office) {
		undone := errors.New("undone")
		err := o.DB.Write(t.Context(), func(tx *db.Tx) error {
			if err := o.Post(tx, welcome); err != nil {
				return err
			}
			return undone
		})
		if !errors.Is(err, undone) {
			t.Fatal(err)
		}
		o.run()
		if all, err := o.Transport.(Folder).List(); err != nil || len(all) != 0 {
			t.Errorf("%d letters, %v", len(all), err)
		}
	})
}

// answers is a transport that fails with the errors that the test gives.
type answers struct {
	mu   sync.Mutex
	errs []error
	got  []Letter
}

func (a *answers) Send(_ context.Context, l Letter) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, l)
	if len(a.errs) == 0 {
		return nil
	}
	err := a.errs[0]
	a.errs = a.errs[1:]
	return err
}

func TestLadder(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		down := &answers{}
		for range len(ladder) + 1 {
			down.errs = append(down.errs, errors.New("connection refused"))
		}
		o.Transport = down
		o.post(welcome)
		o.run()
		for i, wait := range ladder {
			o.clock.Add((wait - time.Second).Microseconds())
			o.run()
			if len(down.got) != i+1 {
				t.Fatalf("%d tries before the wait %d is over", len(down.got), i)
			}
			o.clock.Add(time.Second.Microseconds())
			o.run()
			if len(down.got) != i+2 {
				t.Fatalf("%d tries after the wait %d", len(down.got), i)
			}
		}
		s := o.state()
		if s.State != failed || s.Sealed == "" || s.LastError == nil || *s.LastError != "connection refused" {
			t.Errorf("after the ladder: %+v", s)
		}
		for _, l := range down.got {
			if l.ID != down.got[0].ID || l.Message != welcome {
				t.Errorf("another try sends another letter: %+v", l)
			}
		}
	})
}

// The next process sends a mail whose sender died.
func TestLease(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		ctx, die := context.WithCancel(t.Context())
		o.Transport = fatal{die}
		o.post(welcome)
		if err := o.Pass(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		next := &answers{}
		o.Transport = next
		o.run()
		if len(next.got) != 0 {
			t.Error("a mail is sent by two at once")
		}
		o.clock.Add(lease.Microseconds())
		o.run()
		if s := o.state(); len(next.got) != 1 || s.State != sent || s.Tries != 2 {
			t.Errorf("%d letters, %+v", len(next.got), s)
		}
	})
}

type fatal struct{ die func() }

func (f fatal) Send(context.Context, Letter) error {
	f.die()
	return nil
}

func TestLoop(t *testing.T) {
	t.Parallel()
	arrived := make(chan Letter)
	onBoth(t, channel(arrived), func(t *testing.T, o *office) {
		o.every = 1000 * time.Hour // longer than any test is waited for
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Loop(ctx) }()
		for range 3 {
			o.post(welcome)
			patience.Receive(t, "a mail that does not wait for the sweep", arrived)
			patience.Until(t, "the loop waits for the next one", func() bool { return len(o.open()) == 0 })
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

type channel chan Letter

func (c channel) Send(_ context.Context, l Letter) error {
	c <- l
	return nil
}

// server is a mail server whose answer to RCPT follows from the recipient's name.
type server struct {
	mu       sync.Mutex
	received []string
	greeted  string
	foreign  bool // the newest letter asked for SMTPUTF8
}

type conversation struct {
	*server
	known bool
}

func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.greeted = c.Hostname()
	return &conversation{server: s}, nil
}

func (c *conversation) AuthMechanisms() []string { return []string{sasl.Plain} }

func (c *conversation) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		c.known = user == "yard" && password == "p@ss"
		if !c.known {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (c *conversation) Mail(_ string, o *smtp.MailOptions) error {
	c.mu.Lock()
	c.foreign = o.UTF8
	c.mu.Unlock()
	if !c.known {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (c *conversation) Rcpt(to string, _ *smtp.RcptOptions) error {
	switch {
	case strings.HasPrefix(to, "busy"):
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
	case strings.HasPrefix(to, "nobody"):
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	return nil
}

func (c *conversation) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, string(b))
	return err
}

func (c *conversation) Reset()        {}
func (c *conversation) Logout() error { return nil }

func TestSMTP(t *testing.T) {
	t.Parallel()
	backend := &server{}
	s := smtp.NewServer(backend)
	s.AllowInsecureAuth, s.EnableSMTPUTF8 = true, true
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Serve(listener) }()
	defer func() {
		s.Close()
		if err := <-ended; err != nil && !errors.Is(err, smtp.ErrServerClosed) {
			t.Error(err)
		}
	}()
	send := func(scheme, user, to string) error {
		transport, err := ParseSMTP(scheme+"://"+user+"@"+listener.Addr().String(), "yard.example.com")
		if err != nil {
			t.Fatal(err)
		}
		m := welcome
		m.To = to
		return transport.Send(t.Context(), Letter{Message: m, ID: id.New(), From: "Yärd <yard@example.com>",
			At: time.Unix(1_800_000_000, 0)})
	}
	const good = "yard:p%40ss"
	if err := send("smtp+plain", good, "bob@example.com"); err != nil {
		t.Fatal(err)
	}
	backend.mu.Lock()
	got, greeted, foreign := strings.Join(backend.received, ""), backend.greeted, backend.foreign
	backend.mu.Unlock()
	if greeted != "yard.example.com" {
		t.Errorf("we greeted as %q", greeted)
	}
	if foreign {
		t.Error("SMTPUTF8 was asked for, and all addresses are ASCII")
	}
	if strings.Contains(got, "go-mail") || strings.Contains(got, "User-Agent") || strings.Contains(got, "X-Mailer") {
		t.Errorf("the letter tells with what it was made:\n%s", got)
	}
	for _, want := range []string{"To: <bob@example.com>", "Auto-Submitted: auto-generated", "@example.com>", "Open this once:"} {
		if !strings.Contains(got, want) {
			t.Errorf("the server got no %q:\n%s", want, got)
		}
	}
	if err := send("smtp+plain", good, "jürgen@example.com"); err != nil {
		t.Fatal(err)
	}
	backend.mu.Lock()
	foreign = backend.foreign
	backend.mu.Unlock()
	if !foreign {
		t.Error("SMTPUTF8 was not asked for, and an address needs it")
	}
	for name, c := range map[string]struct {
		scheme, user, to string
		permanent        bool
	}{
		"busy":         {"smtp+plain", good, "busy@example.com", false},
		"no such user": {"smtp+plain", good, "nobody@example.com", true},
		"no address":   {"smtp+plain", good, "nobody", true},
		"password":     {"smtp+plain", "yard:wrong", "bob@example.com", false},
		"no STARTTLS":  {"smtp", good, "bob@example.com", false},
		"no TLS":       {"smtps", good, "bob@example.com", false},
	} {
		err := send(c.scheme, c.user, c.to)
		if err == nil || errors.Is(err, errPermanent) != c.permanent {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "p@ss") {
			t.Errorf("%s: the error repeats the password: %v", name, err)
		}
	}
}

func TestParseSMTP(t *testing.T) {
	for _, bad := range []string{"", "mail.example.com", "http://mail.example.com", "smtp://", "smtp://h:0", "smtp://u:hunter2@h:port"} {
		if _, err := ParseSMTP(bad, ""); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
