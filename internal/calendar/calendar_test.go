package calendar

import (
	"strings"
	"testing"
	"time"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := Zone(name)
	if err != nil {
		t.Fatal(name, err)
	}
	return z
}

func TestZones(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Argentina/Buenos_Aires", "Etc/GMT+12"} {
		zone(t, name)
	}
	for _, name := range []string{"", "Local", "localtime", "Mars/Base", "../../etc/passwd", "/etc/localtime", "right/UTC", "posix/UTC",
		strings.Repeat("A", 65), "Europe/Berlin\x00"} {
		if _, err := Zone(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// Each row is an expression in a zone: its occurrences after an instant, in order.
func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cron, zone, after string
		want                    []string
	}{
		{"each morning", "0 8 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z",
			[]string{"2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z", "2026-03-30T06:00:00Z"}},
		{"the very instant is not after itself", "0 8 * * *", "UTC", "2026-03-27T08:00:00Z", []string{"2026-03-28T08:00:00Z"}},
		{"a moment before", "0 8 * * *", "UTC", "2026-03-27T07:59:59.999999Z", []string{"2026-03-27T08:00:00Z"}},
		{"a gap: at the change, once", "15,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:15:00Z"}},
		{"a gap, the last minute before", "59 1 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T00:59:00Z"}},
		{"a gap, where every hour is meant", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		{"an overlap: the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"an overlap, behind the first time", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"an overlap, between its two", "45 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:45:00Z"}},
		{"an overlap, where every hour is meant", "0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"a half-hour zone", "0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", []string{"2026-01-01T03:30:00Z"}},
		{"a quarter-hour zone", "0 9 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", []string{"2026-01-01T03:15:00Z"}},
		{"every hour of a half-hour zone", "0 * * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:30:00Z"}},
		{"a change of half an hour: the gap", "10 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:10:00Z"}},
		{"a change of half an hour: behind the overlap", "0 2 * * *", "Australia/Lord_Howe", "2026-04-03T18:00:00Z",
			[]string{"2026-04-04T15:30:00Z", "2026-04-05T15:30:00Z"}},
		{"a gap at midnight", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z",
			[]string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		{"a gap at midnight, every hour", "0 * 24 4 *", "Africa/Cairo", "2026-04-23T12:00:00Z", []string{"2026-04-23T22:00:00Z"}},
		{"an overlap at midnight", "30 23 * * *", "Africa/Cairo", "2026-10-29T12:00:00Z",
			[]string{"2026-10-29T20:30:00Z", "2026-10-30T21:30:00Z"}},
		{"a day that a country passed over", "0 8 * * *", "Pacific/Apia", "2011-12-29T10:00:00Z",
			[]string{"2011-12-29T18:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T18:00:00Z"}},
		{"leap days", "0 12 29 2 *", "UTC", "2026-01-01T00:00:00Z",
			[]string{"2028-02-29T12:00:00Z", "2032-02-29T12:00:00Z"}},
		{"leap days around 2100", "0 12 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T12:00:00Z"}},
		{"the 31st", "0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", []string{"2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"}},
		{"either day", "0 0 1 * mon", "UTC", "2026-06-01T00:00:00Z", []string{"2026-06-08T00:00:00Z"}},
		{"Sundays by both numbers", "0 0 * * 7", "UTC", "2026-06-01T00:00:00Z", []string{"2026-06-07T00:00:00Z"}},
		{"over the new year", "0 0 1 1 *", "Pacific/Kiritimati", "2026-06-01T00:00:00Z", []string{"2026-12-31T10:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, err := ParseCron(c.cron, zone(t, c.zone))
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339Nano, c.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				next, ok := e.Next(at)
				if got := next.Format(time.RFC3339); !ok || got != want {
					t.Fatalf("%s in %s after %s: %s, want %s", c.cron, c.zone, at.Format(time.RFC3339), got, want)
				}
				at = next
			}
		})
	}
}

func TestNever(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0 0 30 2 *", "0 0 31 2,4,6,9,11 *"} {
		c, err := ParseCron(text, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := c.Next(time.Unix(1_800_000_000, 0)); ok {
			t.Errorf("%s occurs at %s", text, at)
		}
	}
}

func TestNoCron(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "* * * *", "* * * * * *", "@daily", "TZ=UTC 0 0 * * *", "CRON_TZ=UTC * * * *", "60 * * * *",
		"0 24 * * *", "0 0 0 * *", "0 0 * 13 *", "5-1 * * * *", "*/0 * * * *", "a b c d e", "? * * * *", "@every 1s * * *"} {
		if _, err := ParseCron(text, time.UTC); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// What is wrong with an expression is told by the name of its field.
func TestNoCronNamesTheField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"60 * * * *": `its minute, "60"`, "0 24 * * *": `its hour, "24"`, "0 0 0 * *": `its day of the month, "0"`,
		"0 0 * 13 *": `its month, "13"`, "0 0 * * mo-": `its day of the week, "mo-"`, "* *": "five fields", "@daily": "it has 1",
		"5 5 5 5 5 5": "it has 6", "": "it has 0",
	} {
		if _, err := ParseCron(text, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", text, err, want)
		}
	}
}

func TestClosest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"* * * * *": 1, "*/5 * * * *": 5, "*/7 * * * *": 4, "0,56 * * * *": 4, "0,56 3 * * *": 56, "58 23 * * *": 1440,
		"2 0,23 * * *": 60, "*/5 0,23 * * *": 5, "0 8 * * *": 1440, "0 8,20 * * *": 720,
	} {
		c, err := ParseCron(text, time.UTC)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := c.Closest(); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestNoStride holds that an expression which says something else than it does is refused.
func TestNoStride(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"0-0/99999999999 * * * *": false, "*/99999999999 * * * *": false, "*/99999999999999999999999 * * * *": false,
		"0-0/1 * * * *": true, "5-5/1 * * * *": true, "59/1 * * * *": true, "5-5/2 * * * *": false,
		"50/30 * * * *": false, "50/9 * * * *": true, "50/10 * * * *": false, "*/59 */23 */30 */11 */6": true,
		"0 0 */31 * *": false, "0 0 1 */12 *": false, "0 0 * * */7": false, "0 0 * * MON-TUE/5": false, "0 0 * * MON-SAT/5": true,
		"0 0 1 JAN/12 *": false, "1,50/30 * * * *": false, "*/x * * * *": false,
		"0 0/24 * * *": false, "*/60 * * * *": false, "0 0 */32 * *": false, "0 0 1 */13 *": false, "0 0 * * */8": false,
		"000000000000 * * * *": false, "0-000059 * * * *": false, "+1 * * * *": false, "1,2,5-9/5 * * * *": false, "*/+5 * * * *": false,
		"0-10/5 0 * * MON-FRI": true, "5/15 0 1,15 JAN *": true, "1,2,5-9/4 * * * *": true,
	} {
		if _, err := ParseCron(text, time.UTC); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadCron("0 0 * * */7", time.UTC); err != nil {
		t.Errorf("what was taken once is not read any more: %v", err)
	}
	for _, zone := range []string{"Factory", "factory", "SystemV/EST5", "posixrules", "localtime", "right/UTC", "../UTC"} {
		if _, err := Zone(zone); err == nil {
			t.Errorf("%s is a zone", zone)
		}
	}
}
