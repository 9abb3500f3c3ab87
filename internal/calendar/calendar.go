// Package calendar turns dates and times of day of a time zone into instants, and finds
// the occurrences of a cron expression. The database of zones is part of the program, so
// that every node knows the same ones.
//
//   - calendar.go: zones, and the instant of a time of day
//   - cron.go: expressions of five fields
package calendar

import (
	"errors"
	"sort"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a database of zones
)

// errZone says what is wrong with the name of a zone.
var errZone = errors.New("is not a time zone of the IANA database, such as Europe/Berlin or UTC")

// Zone finds a time zone by its name in the IANA database. Its error continues the name
// of a field.
func Zone(name string) (*time.Location, error) {
	// The empty name and Local mean the zone of this machine. Some machines have copies of
	// the database that count leap seconds. Factory is the zone of a machine that has none.
	lower := strings.ToLower(name)
	if name == "" || len(name) > 64 || lower == "local" || lower == "localtime" || lower == "posixrules" || lower == "factory" ||
		strings.HasPrefix(lower, "systemv/") ||
		strings.HasPrefix(lower, "right/") || strings.HasPrefix(lower, "posix/") {
		return nil, errZone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	return zone, nil
}

// Date is a day of the calendar, in no zone.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf is the date of an instant in a zone.
func DateOf(t time.Time, zone *time.Location) Date {
	y, m, d := t.In(zone).Date()
	return Date{y, m, d}
}

// Add is the date so many days later.
func (d Date) Add(days int) Date {
	y, m, day := time.Date(d.Year, d.Month, d.Day+days, 0, 0, 0, 0, time.UTC).Date()
	return Date{y, m, day}
}

// Weekday is the day of the week of a date.
func (d Date) Weekday() time.Weekday {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Weekday()
}

// String is the date as ISO 8601 writes it, such as 2026-03-29.
func (d Date) String() string {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

// At is the instant at which clocks of a zone show a time of day on a date. Where they
// show it twice, At is the first time. Where they pass over it, At is the instant at
// which they do.
func (d Date) At(hour, minute int, zone *time.Location) time.Time {
	shown := time.Date(d.Year, d.Month, d.Day, hour, minute, 0, 0, time.UTC).Unix()
	const day = 24 * 60 * 60
	first := int64(0)
	for _, near := range []int64{shown - 2*day, shown + 2*day} { // offsets are of less than a day
		if at := shown - offset(near, zone); at+offset(at, zone) == shown && (first == 0 || at < first) {
			first = at
		}
	}
	if first == 0 {
		// Clocks are put forward once between begin and end.
		begin := shown - 2*day
		first = begin + int64(sort.Search(4*day, func(i int) bool {
			at := begin + int64(i)
			return at+offset(at, zone) > shown
		}))
	}
	return time.Unix(first, 0).UTC()
}

// offset is how many seconds a zone is ahead of UTC at an instant, in seconds since 1970.
func offset(at int64, zone *time.Location) int64 {
	_, o := time.Unix(at, 0).In(zone).Zone()
	return int64(o)
}
