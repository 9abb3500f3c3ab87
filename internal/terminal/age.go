package terminal

import (
	"fmt"
	"strings"
	"time"
)

// Age is how long ago a time was, or in how long it will be, in one unit: 40s, 5m, 3h,
// 2d, 6w, 3y; "in 5m" for the time to come.
func Age(now, at time.Time) string {
	d := now.Sub(at)
	if d < 0 {
		if d > -time.Second {
			return "0s"
		}
		return "in " + span(-d)
	}
	return span(d)
}

func span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		length, until time.Duration
		name          string
	}{
		{time.Second, 100 * time.Second, "s"}, {time.Minute, 100 * time.Minute, "m"}, {time.Hour, 48 * time.Hour, "h"},
		{day, 30 * day, "d"}, {7 * day, 104 * 7 * day, "w"},
	} {
		if d < u.until {
			return fmt.Sprintf("%d%s", d/u.length, u.name)
		}
	}
	return fmt.Sprintf("%dy", d/(365*day))
}

// Span is a length of time in hours, minutes and seconds, exact to the second: 1h, 1h30m, 45s.
func Span(d time.Duration) string {
	text := d.Truncate(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// When is a time for people: its age, and the time of day or the date.
func When(now, at time.Time) string {
	at, now = at.Local(), now.Local()
	shown := at.Format("2006-01-02 15:04")
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		shown = at.Format("15:04:05")
	}
	age := Age(now, at)
	if now.Before(at) {
		return shown + " (" + age + ")"
	}
	return shown + " (" + age + " ago)"
}
