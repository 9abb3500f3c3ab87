package builtin

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
	flushPkt    = "0000"
	maxPktData  = 65516
	maxCommands = 1000
)

func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

// push is the head of a receive-pack request: the part before the pack.
type push struct {
	updates      []codehost.RefUpdate
	capabilities []string
	raw          []byte // unchanged, to be replayed to git
}

var errMalformed = errors.New("malformed push")

// readPush reads the commands of a push to the end of their section, and leaves r
// after it. It accepts only what git itself would read in the same way, and no
// signed pushes, because the server does not offer them. Clients send a push
// without commands to probe a connection.
func readPush(r *bufio.Reader) (push, error) {
	var p push
	for {
		payload, err := p.readPkt(r)
		if err != nil {
			return push{}, err
		}
		if payload == nil {
			return p, nil
		}
		line, capabilities, has := strings.Cut(string(payload), "\x00")
		if has {
			if len(p.updates) > 0 {
				return push{}, fmt.Errorf("%w: capabilities after the first command", errMalformed)
			}
			p.capabilities = strings.Fields(capabilities)
		}
		line = strings.TrimSuffix(line, "\n")
		if sha, ok := strings.CutPrefix(line, "shallow "); ok {
			if has || !codehost.ValidSHA(sha) {
				return push{}, fmt.Errorf("%w: shallow line", errMalformed)
			}
			continue
		}
		f := strings.Split(line, " ")
		if len(f) != 3 || !validOrZero(f[0]) || !validOrZero(f[1]) || !codehost.ValidRef(f[2]) {
			return push{}, fmt.Errorf("%w: command %.300q", errMalformed, line)
		}
		if len(p.updates) == maxCommands {
			return push{}, fmt.Errorf("%w: more than %d commands", errMalformed, maxCommands)
		}
		p.updates = append(p.updates, codehost.RefUpdate{Ref: f[2], Old: f[0], New: f[1]})
	}
}

func validOrZero(sha string) bool { return sha == codehost.ZeroSHA || codehost.ValidSHA(sha) }

// readPkt reads one packet and keeps a copy; nil is the end of the section.
func (p *push) readPkt(r io.Reader) ([]byte, error) {
	start := len(p.raw)
	if start > maxCommands*512 {
		return nil, fmt.Errorf("%w: too long", errMalformed)
	}
	p.raw = append(p.raw, flushPkt...)
	if _, err := io.ReadFull(r, p.raw[start:]); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	n, err := pktLen(p.raw[start:])
	if err != nil || n == 0 {
		return nil, err
	}
	p.raw = append(p.raw, make([]byte, n-4)...)
	payload := p.raw[start+4:]
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return payload, nil
}

// pktLen reads a packet's length: 0, or more than 4.
func pktLen(digits []byte) (int, error) {
	n, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil || n != 0 && n <= 4 || n > maxPktData+4 {
		return 0, fmt.Errorf("%w: packet length %q", errMalformed, digits)
	}
	return int(n), nil
}

func (p push) can(capability string) bool { return slices.Contains(p.capabilities, capability) }

// sideBand tells whether the answer is sent in the multiplexed form.
func (p push) sideBand() bool { return p.can("side-band-64k") }

// reports tells whether the client asks for the status of each ref.
func (p push) reports() bool { return p.can("report-status") || p.can("report-status-v2") }

// refusal is the in-band answer to a push that git never saw: a reason for each
// ref, which git clients print.
func (p push) refusal(reasons map[string]string) []byte {
	var report bytes.Buffer
	report.WriteString(pkt("unpack ok\n"))
	for _, u := range p.updates {
		reason := reasons[u.Ref]
		if reason == "" {
			reason = "not pushed, because another ref of this push was refused"
		}
		reason = strings.Join(strings.Fields(reason), " ")
		report.WriteString(pkt(fmt.Sprintf("ng %s %.500s\n", u.Ref, reason)))
	}
	report.WriteString(flushPkt)
	if !p.sideBand() {
		return report.Bytes()
	}
	var out bytes.Buffer
	for chunk := range slices.Chunk(report.Bytes(), maxPktData-1) {
		out.WriteString(pkt("\x01" + string(chunk)))
	}
	out.WriteString(flushPkt)
	return out.Bytes()
}

// report reads the answer of receive-pack and collects the refs that were updated.
// Write never fails: it skips unreadable packets.
type report struct {
	sideBand bool
	ok       map[string]bool

	outer, inner packets
}

func newReport(sideBand bool) *report {
	return &report{sideBand: sideBand, ok: make(map[string]bool)}
}

func (r *report) Write(p []byte) (int, error) {
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

func (r *report) line(payload []byte) {
	if ref, ok := strings.CutPrefix(strings.TrimSuffix(string(payload), "\n"), "ok "); ok {
		r.ok[ref] = true
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
