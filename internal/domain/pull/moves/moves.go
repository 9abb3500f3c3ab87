// Package moves decides what happens next to a pull request. All that the decision depends
// on is in Facts and Rules, values of closed types; the table of lines.go is read from the
// top, and its first line that holds is the Step. The package reads no database, no clock
// and no host, and imports nothing of the program, so that its tests walk through
// everything that can occur.
//
//   - moves.go: Next, which reads the table
//   - facts.go, values.go: what a decision depends on
//   - step.go: what can be done, and what can be waited for
//   - lines.go: the table
//   - valid.go: which facts cannot occur together, and why
//   - enders.go: what ends a wait, and which calls are allowed when
//   - view.go: what the API says of facts, and what people are told when facts change
//   - page.go: the table as docs/pull-moves.md has it
package moves

// Next answers what happens now: the first line that holds. A line that does not keep a
// merge, or a place in a merge queue, has both taken back before its own step. Next panics
// if it has to read a fact that nobody has filled in.
func Next(f Facts, r Rules) Step {
	l := lines[at(f, r)]
	switch {
	case !l.Keeps && (f.Act.Is(ActPut) || f.Turn.Is(TurnWaiting)):
		return Step{DoWithdraw, ""}
	case takesSeat(l.Then.Do) && f.Seat.Is(SeatFull):
		return Step{DoWait, ForSeat}
	}
	return l.Then
}

// at is the index of the first line that holds.
func at(f Facts, r Rules) int {
	for i := range lines {
		if lines[i].Is(f, r) {
			return i
		}
	}
	panic("the last line always holds")
}

// takesSeat tells whether a step needs a place in the queue of the account.
func takesSeat(d Do) bool { return d == DoCheck || d == DoReview || d == DoRepair }
