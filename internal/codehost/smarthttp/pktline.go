package smarthttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
)

// Git's wire format: four hexadecimal digits of length, which include themselves,
// then the payload. Length 0 ends a section.
const (
	// Flush is the packet that ends a section.
	Flush      = "0000"
	maxPktData = 65516

	// MaxHead is the most bytes that the commands of a push may need: some 70,000 branches
	// and tags, each of which needs 95 bytes and its name.
	MaxHead = 8 << 20
)

// Pkt is a packet of the text.
func Pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

// Push is the head of a receive-pack request: the part before the pack.
type Push struct {
	Updates      []codehost.RefUpdate
	capabilities []string
	Raw          []byte // unchanged, to be replayed to git
}

// ErrMalformed says that a client sends what is no push.
var ErrMalformed = errors.New("malformed push")

// ErrTooLong says that the commands of a push need more than they may. It is an
// ErrMalformed, too.
var ErrTooLong error = tooLong{}

type tooLong struct{}

func (tooLong) Error() string { return "malformed push: its commands are too long" }

// Is makes it an ErrMalformed.
func (tooLong) Is(target error) bool { return target == ErrMalformed }

// ReadPush reads the commands of a push, at most most bytes, to the end of their
// section, and leaves r after it. It accepts only what git itself would read in the
// same way, and no signed pushes, because the server does not offer them. Clients send
// a push without commands to probe a connection. With ErrTooLong comes the push as far as
// it was read, for Unpacked.
func ReadPush(r *bufio.Reader, most int) (Push, error) {
	var p Push
	for {
		payload, err := p.readPkt(r, most)
		if errors.Is(err, ErrTooLong) {
			return p, err
		}
		if err != nil {
			return Push{}, err
		}
		if payload == nil {
			return p, nil
		}
		line, capabilities, has := strings.Cut(string(payload), "\x00")
		if has {
			if len(p.Updates) > 0 {
				return Push{}, fmt.Errorf("%w: capabilities after the first command", ErrMalformed)
			}
			if strings.Contains(capabilities, "\x00") {
				return Push{}, fmt.Errorf("%w: capabilities that end early", ErrMalformed)
			}
			p.capabilities = strings.Fields(capabilities)
		}
		line = strings.TrimSuffix(line, "\n")
		if sha, ok := strings.CutPrefix(line, "shallow "); ok {
			if has || !codehost.ValidSHA(sha) {
				return Push{}, fmt.Errorf("%w: shallow line", ErrMalformed)
			}
			continue
		}
		f := strings.Split(line, " ")
		if len(f) != 3 || !validOrZero(f[0]) || !validOrZero(f[1]) || !codehost.ValidRef(f[2]) {
			return Push{}, fmt.Errorf("%w: command %.300q", ErrMalformed, line)
		}
		p.Updates = append(p.Updates, codehost.RefUpdate{Ref: f[2], Old: f[0], New: f[1]})
	}
}

func validOrZero(sha string) bool { return sha == codehost.ZeroSHA || codehost.ValidSHA(sha) }

// readPkt reads one packet and keeps a copy; nil is the end of the section.
func (p *Push) readPkt(r io.Reader, most int) ([]byte, error) {
	start := len(p.Raw)
	if start >= most {
		return nil, ErrTooLong
	}
	p.Raw = append(p.Raw, Flush...)
	if _, err := io.ReadFull(r, p.Raw[start:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	n, err := pktLen(p.Raw[start:])
	if err != nil || n == 0 {
		return nil, err
	}
	if start+n > most {
		return nil, ErrTooLong
	}
	p.Raw = append(p.Raw, make([]byte, n-4)...)
	payload := p.Raw[start+4:]
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return payload, nil
}

// pktLen reads a packet's length: 0, or more than 4.
func pktLen(digits []byte) (int, error) {
	n, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil || n != 0 && n <= 4 || n > maxPktData+4 {
		return 0, fmt.Errorf("%w: packet length %q", ErrMalformed, digits)
	}
	return int(n), nil
}

func (p Push) can(capability string) bool { return slices.Contains(p.capabilities, capability) }

// Options tells whether texts follow the commands that are for the server itself, such as
// those that skip its checks.
func (p Push) Options() bool { return p.can("push-options") }

// SideBand tells whether the answer is sent in the multiplexed form.
func (p Push) SideBand() bool { return p.can("side-band-64k") }

// Reports tells whether the client asks for the status of each ref.
func (p Push) Reports() bool { return p.can("report-status") || p.can("report-status-v2") }

// Refusal is the in-band answer to a push that git never saw: a reason for each
// ref, which git clients print.
func (p Push) Refusal(reasons map[string]string) []byte {
	var report bytes.Buffer
	report.WriteString(Pkt("unpack ok\n"))
	for _, u := range p.Updates {
		reason := reasons[u.Ref]
		if reason == "" {
			reason = "not pushed, because another ref of this push was refused"
		}
		reason = strings.Join(strings.Fields(reason), " ")
		report.WriteString(Pkt(fmt.Sprintf("ng %s %.500s\n", u.Ref, reason)))
	}
	report.WriteString(Flush)
	return p.band(report.Bytes())
}

// Unpacked is the in-band answer to a push of which git took nothing, for one reason that
// concerns no ref more than another.
func (p Push) Unpacked(reason string) []byte {
	return p.band([]byte(Pkt("unpack "+strings.Join(strings.Fields(reason), " ")+"\n") + Flush))
}

// band is a report in the form that the client asked for.
func (p Push) band(report []byte) []byte {
	if !p.SideBand() {
		return report
	}
	var out bytes.Buffer
	for chunk := range slices.Chunk(report, maxPktData-1) {
		out.WriteString(Pkt("\x01" + string(chunk)))
	}
	out.WriteString(Flush)
	return out.Bytes()
}

// Report reads the answer of receive-pack and collects the refs that were updated. It skips
// unreadable packets.
type Report struct {
	sideBand bool
	OK       map[string]bool

	outer, inner packets
}

// NewReport reads an answer that is in the multiplexed form or not.
func NewReport(sideBand bool) *Report {
	return &Report{sideBand: sideBand, OK: make(map[string]bool)}
}

// Write implements io.Writer. It never fails.
func (r *Report) Write(p []byte) (int, error) {
	if !r.sideBand {
		r.inner.feed(p, r.line)
		return len(p), nil
	}
	r.outer.feed(p, func(payload []byte) {
		if payload[0] == 1 {
			r.inner.feed(payload[1:], r.line)
		}
	})
	return len(p), nil
}

func (r *Report) line(payload []byte) {
	if ref, ok := strings.CutPrefix(strings.TrimSuffix(string(payload), "\n"), "ok "); ok {
		r.OK[ref] = true
	}
}

// packets splits a stream that arrives in arbitrary pieces into packets.
type packets struct {
	pending []byte
	broken  bool
}

func (s *packets) feed(p []byte, each func(payload []byte)) {
	if s.broken {
		return
	}
	s.pending = append(s.pending, p...)
	for len(s.pending) >= 4 {
		n, err := pktLen(s.pending[:4])
		if err != nil {
			s.broken, s.pending = true, nil
			return
		}
		if n == 0 {
			s.pending = s.pending[4:]
			continue
		}
		if len(s.pending) < n {
			return
		}
		each(s.pending[4:n])
		s.pending = s.pending[n:]
	}
}
