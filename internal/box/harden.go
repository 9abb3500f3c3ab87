package box

import (
	"context"
	"errors"
	"net/http"
	"time"

	"yardmaster/internal/box/exposure"
	"yardmaster/internal/client"
)

// reportTries limits how often one start of the box sends the report.
const reportTries = 8

// reportExposure tells the control plane, once at each start, whether a firewall is
// active on this machine and which ports it listens on.
func (b *box) reportExposure(ctx context.Context) {
	report, wait := exposure.Inspect(ctx), b.cfg.Timing.Retry
	for try := range reportTries {
		if try > 0 {
			sleep(ctx, wait)
			wait = min(2*wait, 10*time.Minute)
		}
		id := b.keys.get()
		_, err := send(ctx, id.ServerURL+"/v1/runners/hardening", "Authorization", "Bearer "+id.RunToken.Value, report, nil)
		var refused *client.Problem
		final := func() bool {
			return errors.As(err, &refused) && refused.Status/100 == 4 &&
				refused.Status != http.StatusUnauthorized && refused.Status != http.StatusTooManyRequests
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			b.log.Debug("the machine's exposure is reported", "firewall", report.Firewall, "ports", len(report.Ports))
			return
		case final():
			b.log.Warn("the report on the machine's exposure is not taken", "error", err)
			return
		}
		b.log.Debug("the report on the machine's exposure is not sent yet", "error", err)
	}
	b.log.Warn("the report on the machine's exposure could not be sent; the next start tries again")
}
