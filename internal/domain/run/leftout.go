package run

import (
	"fmt"

	"yardmaster/internal/protocol"
)

// leftOut is what a box says that an agent has made and its work does not have, within the
// limits of the protocol.
func leftOut(f *protocol.Finished) []protocol.LeftOut {
	more := max(f.LeftMore, 0)
	var out []protocol.LeftOut
	for _, l := range f.Left {
		l.Name, l.Why = clean(l.Name, protocol.MaxLeftBytes), clean(l.Why, protocol.MaxLeftBytes)
		switch l.Kind {
		case protocol.LeftRepository, protocol.LeftBranch:
		default: // of a newer box, perhaps
			l.Kind = protocol.LeftFile
		}
		if l.Name == "" {
			continue
		}
		if len(out) == protocol.MaxLeft {
			more++
			continue
		}
		out = append(out, l)
	}
	if more > 0 {
		out = append(out, protocol.LeftOut{Kind: protocol.LeftFile, Name: "…", Why: fmt.Sprintf("and %d more", more)})
	}
	return out
}

// leftOut is what is stored of that, never nil.
func (r *Row) leftOut() []protocol.LeftOut {
	if r.LeftOut == nil {
		return []protocol.LeftOut{}
	}
	return r.LeftOut.V
}
