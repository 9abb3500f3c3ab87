package whatif

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var begin = time.Unix(1_800_000_000, 0)

// tries are four of one repository that were made at once and claimed one after the other.
func tries() (all []Try) {
	for i := range 4 {
		claimed := begin.Add(time.Duration(i) * time.Minute)
		ended, mode := claimed.Add(time.Minute), "ask"
		all = append(all, Try{
			RunID: fmt.Sprint("r", i), TaskID: fmt.Sprint("t", i), Repo: "acme/web", Kind: "work", Template: "default", Priority: 50,
			CreatedAt: begin, ReadyAt: begin, ClaimedAt: claimed, EndedAt: &ended, CostUSD: new("2.00"),
			MergeMode: &mode, Merged: true, Asked: 1,
		})
	}
	all[3].Protected, all[3].CostUSD, all[3].UnpricedCalls = 1, nil, 3
	return all
}

func TestAsItWas(t *testing.T) {
	t.Parallel()
	found, wrong := Simulate(tries(), nil, Machines{}, begin)
	if wrong != nil || found.Slots != 1 || found.SameOrder != 4 || found.Approvals != (Counts{Was: 4, Would: 4}) ||
		*found.Cost.Would != *found.Cost.Was || found.Cost.UnpricedCalls != 3 {
		t.Errorf("%+v %v", found, wrong)
	}
	if w := found.Waits; len(w) != 1 || w[0].P50 != (Seconds{Was: 60, Would: 60}) || w[0].P90 != (Seconds{Was: 180, Would: 180}) {
		t.Errorf("%+v", w)
	}
}

// A try that has no end yet is played by a clock that is behind the server's, too.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	one := tries()[:1]
	one[0].EndedAt = nil
	found, _ := Simulate(one, nil, Machines{}, begin.Add(-time.Second))
	if found.Slots != 1 || found.SameOrder != 1 || found.Waits[0].P50 != (Seconds{}) {
		t.Errorf("%+v", found)
	}
}

func TestMoreBoxes(t *testing.T) {
	t.Parallel()
	found, _ := Simulate(tries(), nil, Machines{Slots: 2}, begin)
	if w := found.Waits; w[0].P50 != (Seconds{Was: 60, Would: 0}) || w[0].P90 != (Seconds{Was: 180, Would: 60}) {
		t.Errorf("%+v", w)
	}
}

func TestAnotherPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]Counts{
		"version: 1\nmerge: {mode: auto}":  {Was: 4, Would: 1},
		"version: 1\nmerge: {mode: never}": {Was: 4, Would: 0},
		"version: 1\nmerge: {mode: ask}":   {Was: 4, Would: 4},
	} {
		if found, wrong := Simulate(tries(), []byte(policy), Machines{}, begin); wrong != nil || found.Approvals != want {
			t.Errorf("%s: %+v %v", policy, found.Approvals, wrong)
		}
	}
	found, _ := Simulate(tries(), []byte("version: 1\nbudget: {run_usd: 1.5}"), Machines{}, begin)
	if !strings.HasPrefix(*found.Cost.Was, "6") || !strings.HasPrefix(*found.Cost.Would, "4.5") {
		t.Errorf("%s and %s", *found.Cost.Was, *found.Cost.Would)
	}
	if _, wrong := Simulate(tries(), []byte("merge: {mode: perhaps}"), Machines{}, begin); len(wrong) == 0 {
		t.Error("a wrong policy is taken")
	}
	if none, _ := Simulate(nil, nil, Machines{}, begin); none.Tries != 0 || len(none.Waits) != 0 || none.Cost.Was != nil {
		t.Errorf("%+v", none)
	}
}
