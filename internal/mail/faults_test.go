package mail

import (
	"context"
	"io"
	"net"
	netmail "net/mail"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	gomail "github.com/wneessen/go-mail"

	"yardmaster/internal/db"
)

// faulty is a mail server whose faults the test sets.
type faulty struct {
	t       *testing.T
	address string

	mu       sync.Mutex
	down     bool                  // connections end at once
	rcpt     func(to string) error // the answer to RCPT
	data     func(n int) error     // the answer to the text number n, from 1
	after    func(c *smtp.Conn)    // once an answer to a text was sent
	received []*netmail.Message    // texts that it said yes to
	tried    []string              // Message-IDs of all texts
	sessions int
}

// faultyServer starts one, and answers the transport for it.
func faultyServer(t *testing.T) (*faulty, *SMTP) {
	t.Helper()
	f := &faulty{t: t, rcpt: func(string) error { return nil }, data: func(int) error { return nil }, after: func(*smtp.Conn) {}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = listener.Addr().String()
	s := smtp.NewServer(f)
	s.Domain = "mx.example"
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(doorOf{listener, f})
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	transport, err := ParseSMTP("smtp+plain://"+f.address, "")
	if err != nil {
		t.Fatal(err)
	}
	return f, transport
}

// set changes the faults.
func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// got are the subjects of the letters that arrived.
func (f *faulty) got() (subjects []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.received {
		subjects = append(subjects, m.Header.Get("Subject"))
	}
	return subjects
}

// doorOf closes connections while the server is down.
type doorOf struct {
	net.Listener
	f *faulty
}

func (d doorOf) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		d.f.mu.Lock()
		down := d.f.down
		d.f.mu.Unlock()
		if !down {
			return c, nil
		}
		_ = c.Close()
	}
}

func (f *faulty) NewSession(c *smtp.Conn) (smtp.Session, error) {
	f.set(func() { f.sessions++ })
	return &talk{faulty: f, conn: c}, nil
}

type talk struct {
	*faulty
	conn *smtp.Conn
	text bool
}

func (*talk) Mail(string, *smtp.MailOptions) error { return nil }

func (s *talk) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rcpt(to)
}

func (s *talk) Data(r io.Reader) error {
	m, err := netmail.ReadMessage(r)
	if err != nil {
		s.t.Errorf("the text cannot be read: %v", err)
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err
	}
	s.mu.Lock()
	s.tried = append(s.tried, m.Header.Get("Message-Id"))
	n, answer := len(s.tried), s.data
	s.mu.Unlock()
	err = answer(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text = err == nil; s.text {
		s.received = append(s.received, m)
	}
	return err
}

// Reset is called once a text is answered.
func (s *talk) Reset() {
	s.mu.Lock()
	after := s.after
	s.mu.Unlock()
	if s.text {
		after(s.conn)
	}
}

func (*talk) Logout() error { return nil }

func (o *office) later(by time.Duration) { o.clock.Add(by.Microseconds()) }

// read reads in a transaction.
func read[T any](o *office, fn func(tx *db.Tx) (T, error)) (out T) {
	o.t.Helper()
	if err := o.DB.Read(o.t.Context(), func(tx *db.Tx) (err error) {
		out, err = fn(tx)
		return err
	}); err != nil {
		o.t.Fatal(err)
	}
	return out
}

func notice(to, subject string) Message {
	m := Page{Lead: "Something has happened."}.Message(to, subject)
	m.List = "task_done"
	return m
}

func (o *office) failed() []Queued {
	return read(o, func(tx *db.Tx) ([]Queued, error) { return Queue(tx, failed, "", 100) })
}

// A mail server that is down for a day costs no mail a try: all arrive once, in the order
// in which they were posted.
func TestServerIsDownForADay(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		server, transport := faultyServer(t)
		o.Transport = transport
		server.set(func() { server.down = true })
		var want []string
		for hour := range 24 {
			for i := range 2 {
				want = append(want, strconv.Itoa(hour)+"."+strconv.Itoa(i))
				o.post(notice("bob@example.com", want[len(want)-1]))
			}
			for range 4 {
				o.run()
				o.later(15 * time.Minute)
			}
		}
		down := read(o, Down)
		if down == nil || down.Since.Unix() != 1_800_000_000 || !strings.Contains(down.Reason, "takes no mails") || len(o.failed()) != 0 {
			t.Fatalf("the outage is %+v, and %d mails are given up", down, len(o.failed()))
		}
		server.set(func() { server.down = false })
		o.run()
		if got := server.got(); !slices.Equal(got, want) {
			t.Errorf("%d letters: %q", len(got), got)
		}
		if down := read(o, Down); down != nil {
			t.Errorf("it is still down: %+v", down)
		}
		o.later(48 * time.Hour)
		o.run()
		if n := len(server.tried); n != len(want) {
			t.Errorf("%d letters were sent, and %d posted", n, len(want))
		}
	})
}

// While a server is down it is asked once in each pause, not for every mail.
func TestPauses(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		tried := &answers{}
		for range 100 {
			tried.errs = append(tried.errs, errDown)
		}
		o.Transport = tried
		for i := range 20 {
			o.post(notice("bob@example.com", strconv.Itoa(i)))
		}
		for i, wait := range []time.Duration{0, 10 * time.Second, time.Minute, 5 * time.Minute, 5 * time.Minute} {
			o.later(wait - time.Second)
			o.run()
			if i > 0 && len(tried.got) != i {
				t.Fatalf("%d tries before pause %d is over", len(tried.got), i)
			}
			o.later(time.Second)
			o.run()
			if len(tried.got) != i+1 || tried.got[i].Subject != "0" {
				t.Fatalf("%d tries after pause %d", len(tried.got), i)
			}
		}
		// Somebody who asks for a mail again need not wait.
		id := tried.got[0].ID
		tried.errs = nil
		if err := o.DB.Write(t.Context(), func(tx *db.Tx) error {
			_, was, ok, err := o.Retry(tx, id)
			if !ok || was != due {
				t.Errorf("was %s, %v", was, ok)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		o.run()
		if len(tried.got) != 5+20 {
			t.Errorf("%d tries", len(tried.got))
		}
	})
}

func refuse(code int, detail smtp.EnhancedCode, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: detail, Message: text}
}

// An address that is refused for good gets no notifications until it is cleared, and costs
// the others nothing. What somebody has asked for is sent there all the same.
func TestRefusedRecipient(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		server, transport := faultyServer(t)
		o.Transport = transport
		server.set(func() {
			server.rcpt = func(to string) error {
				if strings.HasPrefix(to, "Gone@") {
					return refuse(550, smtp.EnhancedCode{5, 1, 1}, "no such user \x1b[31m")
				}
				return nil
			}
		})
		o.post(notice("Gone@example.com", "1"))
		o.post(notice("bob@example.com", "2"))
		o.run()
		o.post(notice("gone@example.com", "3"))
		o.run()
		if got := server.got(); !slices.Equal(got, []string{"2"}) {
			t.Errorf("arrived: %q", got)
		}
		of := func(address string) *Refusal {
			return read(o, func(tx *db.Tx) (*Refusal, error) { return Refused(tx, address) })
		}
		r := of("GONE@example.com")
		if r == nil || r.Address != "gone@example.com" || r.At.Unix() != 1_800_000_000 || !strings.Contains(r.Reason, "no such user") ||
			strings.Contains(r.Reason, "\x1b") || of("bob@example.com") != nil {
			t.Fatalf("noted: %+v", r)
		}
		all := read(o, func(tx *db.Tx) ([]Refusal, error) { return Refusals(tx, "", 10) })
		if len(all) != 1 || all[0] != *r {
			t.Errorf("listed: %+v", all)
		}
		lost := o.failed()
		if len(lost) != 1 || lost[0].Recipient != "Gone@example.com" {
			t.Fatalf("given up: %+v", lost)
		}
		// A code arrives, and so the address is good again.
		server.set(func() { server.rcpt = func(string) error { return nil } })
		o.post(Page{Lead: "Your code is", Code: "123456"}.Message("gone@example.com", "4"))
		o.run()
		if of("gone@example.com") != nil {
			t.Error("the address is still refused")
		}
		o.post(notice("gone@example.com", "5"))
		o.run()
		if got := server.got(); !slices.Equal(got, []string{"2", "4", "5"}) {
			t.Errorf("arrived: %q", got)
		}
	})
}

// Mails that were posted before an address is refused wait for nobody, and an operator can
// have them sent.
func TestRefusedWhileWaiting(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		tried := &answers{errs: []error{permanent(ErrAddress)}}
		o.Transport = tried
		o.post(notice("gone@example.com", "1"))
		o.post(notice("gone@example.com", "2"))
		o.run()
		lost := o.failed()
		if len(tried.got) != 1 || len(lost) != 2 || *lost[1].LastError != permanent(errStopped).Error() {
			t.Fatalf("%d tries, %+v", len(tried.got), lost)
		}
		if err := o.DB.Write(t.Context(), func(tx *db.Tx) error {
			for _, want := range []bool{true, false} {
				if ok, err := Clear(tx, "Gone@Example.com"); err != nil || ok != want {
					t.Errorf("cleared: %v, %v", ok, err)
				}
			}
			_, _, _, err := o.Retry(tx, lost[1].ID)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		o.run()
		if len(tried.got) != 2 || tried.got[1].ID != lost[1].ID || len(o.failed()) != 1 {
			t.Errorf("%d tries, %+v", len(tried.got), o.failed())
		}
	})
}

// A sender's address that is none is no mail's fault: all wait until it is mended.
func TestNoSender(t *testing.T) {
	t.Parallel()
	onBoth(t, Folder{t.TempDir()}, func(t *testing.T, o *office) {
		o.Transport = Folder{t.TempDir()}
		o.From = "nobody"
		for i := range 10 {
			o.post(notice("bob@example.com", strconv.Itoa(i)))
		}
		for range 12 {
			o.run()
			o.later(24 * time.Hour)
		}
		if down := read(o, Down); down == nil || !strings.Contains(down.Reason, "sender") || len(o.failed()) != 0 {
			t.Fatalf("%+v, %d are given up", down, len(o.failed()))
		}
		o.From = "yard@example.com"
		o.run()
		all, err := o.Transport.(Folder).List()
		if err != nil || len(all) != 10 || read(o, Down) != nil {
			t.Errorf("%d letters, %v", len(all), err)
		}
	})
}

// What a server says of one mail is about that mail alone: later, or never.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rcpt, data   error
		given, noted bool // given up; the address is noted
	}{
		"greylisted":       {rcpt: refuse(451, smtp.EnhancedCode{4, 7, 1}, "come again")},
		"full for now":     {data: refuse(452, smtp.EnhancedCode{4, 3, 1}, "no room")},
		"no such user":     {rcpt: refuse(550, smtp.EnhancedCode{5, 1, 1}, "no such user"), given: true, noted: true},
		"no longer used":   {rcpt: refuse(550, smtp.EnhancedCode{5, 2, 1}, "disabled"), given: true, noted: true},
		"mailbox is full":  {rcpt: refuse(552, smtp.EnhancedCode{5, 2, 2}, "full"), given: true},
		"not allowed":      {rcpt: refuse(550, smtp.EnhancedCode{5, 7, 1}, "policy"), given: true},
		"taken for spam":   {data: refuse(554, smtp.EnhancedCode{5, 7, 1}, "spam"), given: true},
		"content too long": {data: refuse(552, smtp.EnhancedCode{5, 3, 4}, "too large"), given: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, nil, func(t *testing.T, o *office) {
				server, transport := faultyServer(t)
				o.Transport = transport
				server.set(func() {
					server.rcpt, server.data = func(string) error { return c.rcpt }, func(int) error { return c.data }
				})
				o.post(notice("bob@example.com", "1"))
				o.run()
				r := read(o, func(tx *db.Tx) (*Refusal, error) { return Refused(tx, "bob@example.com") })
				s := o.state()
				if (s.State == failed) != c.given || (r != nil) != c.noted || s.LastError == nil || read(o, Down) != nil {
					t.Fatalf("%+v, noted %v", s, r)
				}
				server.set(func() { server.rcpt, server.data = func(string) error { return nil }, func(int) error { return nil } })
				o.later(ladder[0])
				o.run()
				if arrived := len(server.got()) == 1; arrived == c.given {
					t.Errorf("arrived: %v", arrived)
				}
			})
		})
	}
}

// Without TLS where it is required nothing is said of a mail, and no password either.
func TestNoTLS(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		server, _ := faultyServer(t)
		secure, err := ParseSMTP("smtp://yard:hunter2@"+server.address, "")
		if err != nil {
			t.Fatal(err)
		}
		o.Transport = secure
		o.post(notice("bob@example.com", "1"))
		o.run()
		down := read(o, Down)
		if down == nil || !strings.Contains(down.Reason, "STARTTLS") || strings.Contains(down.Reason, "hunter2") {
			t.Errorf("said: %+v", down)
		}
		if len(server.tried) != 0 || o.state().State != due {
			t.Errorf("%d letters, %+v", len(server.tried), o.state())
		}
	})
}

// A server that takes a text and says nothing may have it or not: it gets the same letter
// again, with the same Message-ID. One that says yes and then breaks off has it.
func TestDoubt(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, o *office) {
		server, transport := faultyServer(t)
		// The sender's time is over once the server has the text, however long that took.
		var line net.Conn
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, network, address)
			server.set(func() { line = c })
			return c, err
		}
		transport.options = append(transport.options, gomail.WithDialContextFunc(dial))
		o.Transport = transport
		let := make(chan struct{})
		server.set(func() {
			server.data = func(n int) error {
				if n == 1 {
					server.set(func() { _ = line.SetDeadline(time.Unix(1, 0)) })
					<-let
				}
				return nil
			}
		})
		o.post(notice("bob@example.com", "1"))
		o.run()
		close(let)
		if s := o.state(); s.State != due {
			t.Fatalf("%+v", s)
		}
		o.later(ladder[0])
		o.run()
		server.mu.Lock()
		tried := slices.Clone(server.tried)
		server.mu.Unlock()
		if len(tried) != 2 || tried[0] != tried[1] || !strings.HasSuffix(tried[0], "@example.com>") {
			t.Errorf("sent: %q", tried)
		}

		server.set(func() { server.after = func(c *smtp.Conn) { _ = c.Conn().Close() } })
		o.post(notice("bob@example.com", "2"))
		o.run()
		o.later(time.Hour)
		o.run()
		if server.mu.Lock(); len(server.tried) != 3 {
			t.Errorf("sent: %q", server.tried)
		}
		server.mu.Unlock()
		if lost := o.failed(); len(lost) != 0 || read(o, Down) != nil {
			t.Errorf("%+v", lost)
		}
	})
}
