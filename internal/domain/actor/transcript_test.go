//go:build !race

// Without this constraint the race detector would compile and run a server with
// every capability for each domain. Concurrent code has tests of its own.

package actor_test

import (
	"testing"

	"yardmaster/internal/proof/transcript"
)

func TestMain(m *testing.M) { transcript.Main(m) }

func TestTranscripts(t *testing.T) { transcript.Run(t) }
