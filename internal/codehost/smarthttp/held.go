package smarthttp

import "io"

// Held passes the progress of receive-pack on, with what keeps the connection open, and
// keeps its report back until Release: what the report says may still have to be undone.
type Held struct {
	To       io.Writer
	SideBand bool // the answer is in the multiplexed form; otherwise all of it is kept

	pending, kept []byte
	passed        bool
}

// Write implements io.Writer.
func (h *Held) Write(p []byte) (int, error) {
	if !h.SideBand {
		h.kept = append(h.kept, p...)
		return len(p), nil
	}
	h.pending = append(h.pending, p...)
	for len(h.pending) >= 4 {
		n, err := pktLen(h.pending[:4])
		if err != nil { // no answer of git: the client judges it
			h.kept, h.pending = append(h.kept, h.pending...), nil
			break
		}
		n = max(n, 4)
		if len(h.pending) < n {
			break
		}
		packet := h.pending[:n]
		h.pending = h.pending[n:]
		if n == 4 || packet[4] == 1 && n > 5 {
			h.kept = append(h.kept, packet...)
			continue
		}
		h.passed = true
		if _, err := h.To.Write(packet); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Passed tells whether anything has gone to the client.
func (h *Held) Passed() bool { return h.passed }

// Release passes on what was kept.
func (h *Held) Release() error {
	all := append(h.kept, h.pending...)
	h.kept, h.pending = nil, nil
	if len(all) == 0 {
		return nil
	}
	_, err := h.To.Write(all)
	return err
}
