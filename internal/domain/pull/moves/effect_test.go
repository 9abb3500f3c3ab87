package moves

// Effect answers what a step may leave, all of its outcomes. A step that asks the host
// ends with its answer; one that begins something ends when that has begun. The facts are
// those for which Next has answered the step. No step but a look, a push, and the opening
// of what was closed waits for the host: what else is done there is an intent.
func Effect(f Facts, s Step) (out []Facts) {
	switch s.Do {
	case DoLook:
		return looked(f)
	case DoCheck:
		return []Facts{with(f, func(f *Facts) { f.Checks = ChecksPending }), with(f, func(f *Facts) { f.Checks = ChecksNone })}
	case DoReview:
		begun := with(f, func(f *Facts) { f.Review = ReviewRunning })
		return append(reviewed(f, ReviewLooked, ReviewBlind), begun) // the same change was reviewed before; nobody can look
	case DoRepair:
		return begun(f, s.Of)
	case DoStopWork:
		return []Facts{with(f, func(f *Facts) { f.Round = NoRound })}
	case DoTakeOver:
		return []Facts{takenOver(f)}
	case DoAsk:
		return []Facts{with(f, func(f *Facts) { f.Question, f.Yes, f.Carry = Asked, NoYes, NoCarry })}
	case DoPushWork:
		none := with(f, func(f *Facts) { f.Push = NoPush })
		return []Facts{moved(none), with(none, func(f *Facts) { f.Known = Unread }), with(none, spendAll)}
	case DoEnter:
		return []Facts{with(f, func(f *Facts) { f.Turn = TurnWaiting })}
	case DoMerge:
		return []Facts{with(f, func(f *Facts) { f.Act = ActPut })}
	case DoWithdraw:
		return []Facts{with(f, withdraw)}
	case DoRecord:
		return []Facts{with(f, func(f *Facts) { f.State = Merged; clear(f) })}
	case DoClose:
		return []Facts{with(f, func(f *Facts) { f.State = Closed; clear(f) })}
	case DoReopen:
		open := with(f, func(f *Facts) { f.State = Open })
		return []Facts{moved(open), with(f, func(f *Facts) { f.State = Closed })}
	}
	return nil
}

func with(f Facts, do func(*Facts)) Facts { do(&f); return f }

// clear ends all that goes on about a pull request that ends.
func clear(f *Facts) {
	f.Round, f.Push, f.Question, f.Carry, f.Yes, f.Act = NoRound, NoPush, NoQuestion, NoCarry, NoYes, NoAct
	withdraw(f)
	stopReview(f)
}

func withdraw(f *Facts) {
	if f.Act.Is(ActPut) {
		f.Act = NoAct
	}
	if f.Turn.Is(TurnWaiting) {
		f.Turn = TurnOut
	}
}

func stopReview(f *Facts) {
	if f.Review.Is(ReviewRunning, ReviewHeld) {
		f.Review = ReviewCancelled
	}
}

func spendAll(f *Facts) {
	f.CI, f.Conflicts, f.Requests, f.Reviews = RoundsSpent, RoundsSpent, RoundsSpent, RoundsSpent
}

func armAll(f *Facts) {
	f.CI, f.Conflicts, f.Requests, f.Reviews = RoundsLeft, RoundsLeft, RoundsLeft, RoundsLeft
}

// moved is the one rule about a head that moves: what was about the old one ends. A
// question and a yes may hold for the new one, if the change is the same; a no holds on
// as Refused. A finding is looked at again, a request of a person stays.
func moved(f Facts) Facts {
	switch {
	case f.Abandoned.Is(GivenUp): // the cancel has ended what could be carried
	case f.Yes.Is(YesFresh, YesFirm), f.Carry.Is(CarryYes):
		f.Carry = MaybeYes
	case f.Question.Is(Asked, Narrow), f.Carry.Is(CarryQuestion):
		f.Carry = MaybeQuestion
	}
	f.Question, f.Yes = NoQuestion, NoYes
	if f.Act.Is(ActFailed) {
		f.Act = NoAct
	}
	withdraw(&f)
	f.Known, f.Checks, f.Review = Unread, ChecksDue, ReviewNone
	if f.Findings.Is(OpenFindings) {
		f.Findings = AgainFindings
	}
	f.Push = NoPush
	switch {
	case f.Round.Is(RoundRunning):
		f.Round = RoundGoingOn
	case f.Round.Is(Resting):
		f.Round = NoRound
	}
	return f
}

// looked are the answers of git. A look at a head that has moved again is not among them:
// that is a push that nobody has told of yet.
func looked(f Facts) (out []Facts) {
	for _, k := range []Known{Gone, Empty, Landed, NoBase} {
		out = append(out, with(f, func(f *Facts) { f.Known = k }))
	}
	for _, h := range []Host{HostBusy, HostRefuses} {
		out = append(out, with(f, func(f *Facts) { f.Host = h }))
	}
	f.Known = Read
	maybe := map[Carry]Carry{MaybeQuestion: CarryQuestion, MaybeYes: CarryYes}
	for _, fit := range fact[fit](0).Values() {
		clean := with(f, func(f *Facts) { f.Fit, f.Names = fit, NamesNothing; widen(f) })
		named := with(f, func(f *Facts) { f.Fit, f.Names = fit, NamesSomething })
		if f.Carry.Is(MaybeQuestion, MaybeYes) {
			out = append(out, with(clean, func(f *Facts) { f.Carry = maybe[f.Carry] })) // never with something to be named
			clean.Carry, named.Carry = NoCarry, NoCarry
		}
		out = append(out, clean, named, with(named, narrow)) // named in the question already, or not
	}
	return out
}

// narrow: the merge would do what the question or the yes does not name.
func narrow(f *Facts) {
	if f.Question.Is(Asked) {
		f.Question = Narrow
	}
	if f.Yes.Is(YesFresh, YesFirm) {
		f.Yes = YesNarrow
	}
}

// widen: the merge would do nothing that has to be named, so what was decided covers it.
func widen(f *Facts) {
	if f.Question.Is(Narrow) {
		f.Question = Asked
	}
	if f.Yes.Is(YesNarrow) {
		f.Yes, f.Refused = YesFirm, NeverRefused
	}
}

// reviewed are the ends of a review. Only one that has looked says what becomes of the
// findings. One that has not leaves them open, for a round or a person.
func reviewed(f Facts, ends ...Review) (out []Facts) {
	for _, end := range ends {
		f.Review = end
		if end.Is(ReviewLooked) {
			out = append(out, with(f, func(f *Facts) { f.Findings = NoFindings }), with(f, func(f *Facts) { f.Findings = OpenFindings }))
			continue
		}
		out = append(out, with(f, func(f *Facts) {
			if f.Findings.Is(AgainFindings) {
				f.Findings = OpenFindings
			}
		}))
	}
	return out
}

// begun are the ends of the beginning of a round: it may be the last of its kind.
func begun(f Facts, kind string) []Facts {
	f.Round = RoundRunning
	last := f
	switch kind {
	case KindConflict:
		last.Conflicts = RoundsSpent
	case KindCI:
		last.CI = RoundsSpent
	case KindRequest:
		last.Requests = RoundsSpent
	case KindReview:
		last.Reviews = RoundsSpent
	}
	return []Facts{f, last}
}

// takenOver is a decision that holds for the present head.
func takenOver(f Facts) Facts {
	if f.Carry.Is(CarryYes) {
		f.Yes, f.Refused = YesFirm, NeverRefused
	} else {
		f.Question = Asked
	}
	f.Carry = NoCarry
	return f
}
