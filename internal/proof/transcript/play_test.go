//go:build !race

// Without this constraint the race detector would compile and run a server with
// every capability. Concurrent code has tests of its own.

package transcript

import "testing"

func TestMain(m *testing.M) { Main(m) }

func TestTranscripts(t *testing.T) { RunAll(t, "../../..") }
