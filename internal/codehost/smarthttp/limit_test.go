package smarthttp

import (
	"context"
	"sync"
	"testing"
)

// TestTurns holds that the transfers of one credential wait for each other, and those
// of another credential do not wait for them.
func TestTurns(t *testing.T) {
	var all Limit
	var leaves []func()
	for range AtOnce {
		leave, err := all.Take(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.Take(gone, "ann"); err == nil {
		t.Fatal("there was a turn too many")
	}
	leave, err := all.Take(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	var waiting sync.WaitGroup
	for range 3 * AtOnce {
		waiting.Go(func() {
			leave, err := all.Take(t.Context(), "ann")
			if err != nil {
				t.Error(err)
				return
			}
			leave()
		})
	}
	for _, leave := range leaves {
		leave()
	}
	waiting.Wait()
	if len(all.held) != 0 {
		t.Errorf("%d are remembered", len(all.held))
	}
}
