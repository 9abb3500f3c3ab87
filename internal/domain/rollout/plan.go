package rollout

import (
	"fmt"
	"slices"

	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/protocol"
	"yardmaster/internal/version"
)

// classify says what a box is in a rollout of a release: Waits, or why it takes no part. steps is
// its way there.
func classify(b box.Standing, p policyOf, channel, to string, builds []release.Build) (state, why string, steps []protocol.Update) {
	follows, pinned, reason := p.of(b)
	switch {
	case version.Same(b.Version, to) || version.After(b.Version, to):
		return Current, "", nil
	case pinned:
		return Pinned, reason, nil
	case follows != channel:
		return OtherChannel, "It follows the channel " + follows + ".", nil
	case b.Presence != box.Online:
		return Away, "It is " + b.Presence + ".", nil
	case b.State != box.Enrolled:
		return Away, "It is " + b.State + ".", nil
	case b.Update == nil:
		return Unable, "Its program cannot update itself: install the new one by hand.", nil
	case b.Update.Keys == 0:
		return Unable, "It was told no key of releases at its enrolment: name one with --release-keys on the box.", nil
	case !version.Valid(b.Version):
		return Unable, fmt.Sprintf("Its version %q has no place among the others.", b.Version), nil
	case !slices.Contains(release.Targets(builds, to), b.Target):
		return Unbuilt, "The release is not built for " + b.Target + ".", nil
	}
	if steps = release.Steps(builds, b.Target, b.Version, to); steps == nil {
		return Unreachable, "No steps lead from " + b.Version + " to " + to + ".", nil
	}
	return Waits, "", steps
}

// waves are the sizes of the waves for so many boxes: one, up to five, a quarter, the rest.
func waves(boxes int) (out []int) {
	left := boxes
	for _, most := range []int{1, 5, (boxes + 3) / 4, boxes} {
		if n := min(most, left); n > 0 {
			out = append(out, n)
			left -= n
		}
	}
	return out
}

// plan makes the rows of a rollout. Those that take part have a wave, the first is the canary.
func plan(r row, boxes []box.Standing, p policyOf, builds []release.Build) (out []boxRow) {
	parts := 0
	for _, b := range boxes {
		state, why, _ := classify(b, p, r.Channel, r.Version, builds)
		out = append(out, boxRow{RolloutID: r.ID, BoxID: b.ID, State: state, Why: why, FromVersion: b.Version, ChangedAt: r.CreatedAt})
		if state == Waits {
			parts++
		}
	}
	sizes, wave := waves(parts), 0
	for i := range out {
		if out[i].State != Waits {
			continue
		}
		if sizes[wave] == 0 {
			wave++
		}
		sizes[wave]--
		out[i].Wave = int64(wave + 1)
	}
	return out
}
