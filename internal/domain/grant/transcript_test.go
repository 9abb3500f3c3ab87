package grant_test

import (
	"testing"

	"yardmaster/internal/proof/transcript"
)

func TestMain(m *testing.M) { transcript.Main(m) }

func TestTranscripts(t *testing.T) { transcript.Run(t) }
