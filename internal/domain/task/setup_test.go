package task_test

import "testing"

func TestSetupNeedsRoom(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.queueCap(0)
		if p := f.refused("POST", "/v1/repos/acme/web/setup", nil, 429, "queue-full"); p["retry_after"] == nil {
			f.t.Errorf("no retry_after: %v", p)
		}
		f.seats = 0
		f.refused("POST", "/v1/repos/acme/web/setup", nil, 403, "no-capacity")
	})
}
