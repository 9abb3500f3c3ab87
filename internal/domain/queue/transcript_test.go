//go:build !race

// Under the race detector a server of every capability would be compiled and
// run for each domain: what runs at once is in tests of its own.

package queue_test

import (
	"testing"

	"yardmaster/internal/proof/transcript"
)

func TestMain(m *testing.M) { transcript.Main(m) }

func TestTranscripts(t *testing.T) { transcript.Run(t) }
