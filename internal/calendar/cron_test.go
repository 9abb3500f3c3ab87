package calendar

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "yardmaster/internal/proof/chance" // seeds rapid
)

// changes are days on which clocks of a zone change, one way and the other.
var changes = []struct{ zone, day string }{
	{"Europe/Berlin", "2026-03-29"}, {"Europe/Berlin", "2026-10-25"}, {"America/New_York", "2026-03-08"},
	{"America/New_York", "2026-11-01"},
	{"Australia/Lord_Howe", "2026-04-05"}, {"Australia/Lord_Howe", "2026-10-04"}, {"Africa/Cairo", "2026-04-24"},
	{"Africa/Cairo", "2026-10-30"}, {"Asia/Kathmandu", "2026-05-05"}, {"America/St_Johns", "2026-03-08"}, {"Pacific/Apia", "2011-12-30"},
	{"America/Sao_Paulo", "2018-11-04"}, {"America/Sao_Paulo", "2018-02-18"}, {"UTC", "2028-02-29"},
}

// shown is what clocks show at an instant: a number that grows with the date and the time.
func shown(t time.Time, zone *time.Location) string { return t.In(zone).Format("2006-01-02 15:04") }

// walk finds the occurrences of three days around a change by looking at each minute.
func walk(c Cron, begin time.Time, zone *time.Location) (out []time.Time) {
	var minutes []time.Time
	var clocks []string
	for at := begin.Add(-72 * time.Hour); at.Before(begin.Add(96 * time.Hour)); at = at.Add(time.Minute) {
		minutes, clocks = append(minutes, at), append(clocks, shown(at, zone))
	}
	if c.hours&star != 0 {
		for _, at := range minutes {
			if c.on(DateOf(at, zone)) && has(c.minutes, at.In(zone).Minute()) {
				out = append(out, at)
			}
		}
		return out
	}
	for d := DateOf(begin, zone).Add(-2); d != DateOf(begin, zone).Add(3); d = d.Add(1) {
		for at := range 24 * 60 {
			if !c.on(d) || !has(c.hours, at/60) || !has(c.minutes, at%60) {
				continue
			}
			want := fmt.Sprintf("%s %02d:%02d", d, at/60, at%60)
			i := slices.Index(clocks, want)
			if i < 0 {
				i = slices.IndexFunc(clocks, func(text string) bool { return text > want })
			}
			out = append(out, minutes[i])
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.Compact(out)
}

// What Next finds is what is found by looking at each minute, around the changes of clocks.
func TestNextIsWhatClocksShow(t *testing.T) {
	t.Parallel()
	field := func(most int) *rapid.Generator[string] {
		return rapid.OneOf(rapid.Just("*"), rapid.Map(rapid.IntRange(0, most), func(n int) string { return fmt.Sprint(n) }),
			rapid.Map(rapid.IntRange(2, most), func(n int) string { return fmt.Sprintf("*/%d", n) }),
			rapid.Map(rapid.IntRange(0, most-1), func(n int) string { return fmt.Sprintf("%d-%d", n, min(n+2, most)) }))
	}
	rapid.Check(t, func(t *rapid.T) {
		ch := rapid.SampledFrom(changes).Draw(t, "change")
		zone, err := Zone(ch.zone)
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.Parse(time.DateOnly, ch.day)
		if err != nil {
			t.Fatal(err)
		}
		days := rapid.SampledFrom([]string{"*", "0", "1-6", "6"})
		text := field(59).Draw(t, "minute") + " " + field(23).Draw(t, "hour") + " * * " + days.Draw(t, "day")
		c, err := ParseCron(text, zone)
		if err != nil {
			t.Fatal(text, err)
		}
		all := walk(c, day, zone)
		for at := day.Add(-24 * time.Hour); at.Before(day.Add(36 * time.Hour)); {
			i := slices.IndexFunc(all, func(t time.Time) bool { return t.After(at) })
			if i < 0 {
				return // beyond what was looked at
			}
			got, ok := c.Next(at)
			if !ok || !got.Equal(all[i]) {
				t.Fatalf("%s in %s after %s: %s, want %s", text, ch.zone, at, got, all[i])
			}
			at = got
		}
	})
}
