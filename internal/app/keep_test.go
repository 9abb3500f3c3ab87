package app

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/artifact"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/source"
	"yardmaster/internal/domain/webhook"
)

// Each setting of how long rows are kept reaches the domain that it is about.
func TestKeepReaches(t *testing.T) {
	t.Parallel()
	y := boot(t, db.SQLite, "--keep-notifications=91", "--keep-digests=92", "--keep-webhook-events=93", "--keep-host-deliveries=94",
		"--keep-source-deliveries=95", "--keep-mails=96", "--keep-run-artifacts=97", "--keep-artifacts=98",
		"--keep-run-events=99", "--keep-audit=100")
	for i, got := range []time.Duration{
		part[*notification.Service](y.App).Keep, part[*digest.Service](y.App).Keep, part[*webhook.Service](y.App).Keep,
		part[*delivery.Service](y.App).Keep, part[*source.Service](y.App).Keep, y.mail.Keep,
		part[*artifact.Service](y.App).KeepRun, part[*artifact.Service](y.App).Keep,
		part[*run.Service](y.App).KeepEvents, y.reaper().Keep,
	} {
		if want := time.Duration(91+i) * 24 * time.Hour; got != want {
			t.Errorf("setting %d: %s, want %s", i, got, want)
		}
	}
}
