package box

import (
	"context"
	"errors"
	"net/http"
	"time"

	"yardmaster/internal/box/exposure"
	"yardmaster/internal/client"
)

// reportTries is how often the report is sent until it is taken; the next start
// brings another.
const reportTries = 8

// reportExposure tells the control plane, once a start, whether a firewall is at
// work on this machine and what listens on it.
func (b *box) reportExposure(ctx context.Context) {
	report, wait := exposure.Look(ctx), b.cfg.Timing.Retry
	for try := range reportTries {
		if try > 0 {
			sleep(ctx, wait)
			wait = min(2*wait, 10*time.Minute)
		}
		id := b.keys.get()
		_, err := send(ctx, id.ServerURL+"/v1/runners/hardening", "Authorization", "Bearer "+id.RunToken.Value, report, nil)
		var refused *client.Problem
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			b.log.Debug("the machine's exposure is reported", "firewall", report.Firewall, "ports", len(report.Ports))
			return
		case errors.As(err, &refused) && refused.Status/100 == 4 && refused.Status != http.StatusUnauthorized && refused.Status != http.StatusTooManyRequests:
			b.log.Warn("the report on the machine's exposure is not taken", "error", err)
			return
		}
		b.log.Debug("the report on the machine's exposure is not sent yet", "error", err)
	}
	b.log.Warn("the report on the machine's exposure could not be sent; the next start tries again")
}
