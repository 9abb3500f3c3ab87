package change

import (
	"testing"
	"time"
)

func TestQueuePlaceInWords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)
	for want, q := range map[string]queuePlace{
		"batched in the merge queue of this server, position 2, since 2026-05-04 12:00:00": {"own", "batched", 2, at},
		"waiting in the merge queue of the code host, since 2026-05-04 12:00:00":           {"host", "waiting", 0, at},
	} {
		if got := q.words(); got != want {
			t.Errorf("%+v is %q, not %q", q, got, want)
		}
	}
}
