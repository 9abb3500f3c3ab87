package calendar

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Cron is an expression of five fields (minute, hour, day of the month, month, day of
// the week) in a zone.
//
// Where the field of the hour is *, the occurrences follow time as it passes: an hour
// that clocks repeat has its occurrences twice, an hour that they pass over has none.
// Elsewhere a time of day occurs once on each of its days: the first time, where clocks
// show it twice, and at the instant of the change, where they pass over it.
type Cron struct {
	minutes, hours, days, months, weekdays uint64
	zone                                   *time.Location
}

const (
	star    = 1 << 63 // of a field that is *
	horizon = 8*366 + 2
)

var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// ParseCron reads an expression of a person, and refuses what says something else than it does.
// Its error continues the name of a field.
func ParseCron(text string, zone *time.Location) (Cron, error) {
	parts := strings.Fields(text)
	for i, part := range parts {
		if len(parts) != len(single) {
			break // to be refused for that
		}
		if err := single[i].words(part); err != nil {
			return Cron{}, fmt.Errorf("is no cron expression: its %s, %q: %w", single[i].name, part, err)
		}
	}
	c, err := ReadCron(text, zone)
	if err != nil {
		return c, err
	}
	for i, part := range parts {
		if i == 4 {
			part = sundays(part)
		}
		if err := single[i].misread(part); err != nil {
			return Cron{}, fmt.Errorf("is no cron expression: its %s, %q: %w", single[i].name, parts[i], err)
		}
	}
	return c, nil
}

// ReadCron reads an expression that was taken once, when less was refused perhaps.
func ReadCron(text string, zone *time.Location) (Cron, error) {
	parts := strings.Fields(text)
	if len(parts) != 5 || strings.ContainsAny(text, "@=?") {
		return Cron{}, fmt.Errorf("must have five fields: minute, hour, day of the month, month and day of the week, without @, = and ?; it has %d",
			len(parts))
	}
	parts[4] = sundays(parts[4])
	s, err := fields.Parse(strings.Join(parts, " "))
	if err != nil {
		return Cron{}, fmt.Errorf("is no cron expression: %w", at(parts, err))
	}
	spec, ok := s.(*cron.SpecSchedule)
	if !ok {
		return Cron{}, errors.New("is no cron expression")
	}
	return Cron{minutes: spec.Minute, hours: spec.Hour, days: spec.Dom, months: spec.Month, weekdays: spec.Dow, zone: zone}, nil
}

// sundays writes a field of the day of the week with 0 for each Sunday that is a 7, and for the
// one at the end of a range: crontab(5) has Sunday at both ends of the week.
func sundays(text string) string {
	items := strings.Split(strings.ToLower(text), ",")
	for i, item := range items {
		values, step, stepped := strings.Cut(item, "/")
		from, to, ranged := strings.Cut(values, "-")
		first, every, ok := weekday(from), 1, true
		if stepped {
			n, err := strconv.Atoi(step)
			every, ok = n, err == nil && n > 0
		}
		switch {
		case !ok:
		case values == "7" && !stepped:
			items[i] = "0"
		case ranged && first >= 0 && (to == "7" || to == "sun" && first > 0):
			var days []string
			for day := first; day <= 7; day += every {
				days = append(days, strconv.Itoa(day%7))
			}
			if items[i] = strings.Join(days, ","); len(days) == 1 && stepped { // to be refused as other such steps
				items[i] = from + "-6/" + step
			}
		}
	}
	return strings.Join(items, ",")
}

// weekday is the number of a day of the week, 0 to 7, or -1.
func weekday(text string) int {
	if at := strings.Index(weekdays, text); len(text) == 3 && at >= 0 && at%4 == 0 {
		return at / 4
	}
	if len(text) == 1 && text[0] >= '0' && text[0] <= '7' {
		return int(text[0] - '0')
	}
	return -1
}

const (
	months   = "jan feb mar apr may jun jul aug sep oct nov dec"
	weekdays = "sun mon tue wed thu fri sat"
)

// field is a field that is read by itself.
type field struct {
	name   string
	names  string // of three letters each, with a space between
	parser cron.Parser
	values func(*cron.SpecSchedule) uint64
}

// single read the fields one by one, to find the one that is wrong.
var single = []field{
	{"minute", "", cron.NewParser(cron.Minute), func(s *cron.SpecSchedule) uint64 { return s.Minute }},
	{"hour", "", cron.NewParser(cron.Hour), func(s *cron.SpecSchedule) uint64 { return s.Hour }},
	{"day of the month", "", cron.NewParser(cron.Dom), func(s *cron.SpecSchedule) uint64 { return s.Dom }},
	{"month", months, cron.NewParser(cron.Month), func(s *cron.SpecSchedule) uint64 { return s.Month }},
	{"day of the week", weekdays, cron.NewParser(cron.Dow), func(s *cron.SpecSchedule) uint64 { return s.Dow }},
}

// words refuses what is neither *, a number nor a name of the field, such as the L, W and #
// that other readers of such expressions know.
func (f field) words(text string) error {
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(",-/", r) }) {
		at := strings.Index(f.names, word)
		named := len(word) == 3 && at >= 0 && at%4 == 0
		if word != "*" && !named && strings.Trim(word, "0123456789") != "" {
			return fmt.Errorf("%q is no value of it", word)
		}
	}
	return nil
}

// misread refuses what the parser takes for something else than it says: a number of more than
// two digits, and a step that leads to no second value.
func (f field) misread(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		values, step, stepped := strings.Cut(item, "/")
		from, to, _ := strings.Cut(values, "-")
		for _, number := range []string{from, to, step} {
			if other := strings.Trim(number, "0123456789"); other == "" && len(number) > 2 || strings.ContainsAny(number, "+_") {
				return errors.New("has a number that is none of the field")
			}
		}
		if n, err := strconv.Atoi(step); !stepped || err == nil && n == 1 {
			continue
		}
		s, err := f.parser.Parse(item)
		if err != nil {
			return err
		}
		if spec, ok := s.(*cron.SpecSchedule); ok && bits.OnesCount64(f.values(spec)&^star) == 1 {
			return fmt.Errorf("steps by %s out of its range at once", step)
		}
	}
	return nil
}

// at puts the name of the first field that cannot be read before what is wrong with it; err is
// the answer if each can be read.
func at(parts []string, err error) error {
	for i, of := range single {
		if _, wrong := of.parser.Parse(parts[i]); wrong != nil {
			return fmt.Errorf("its %s, %q: %w", of.name, parts[i], wrong)
		}
	}
	return err
}

func has(set uint64, n int) bool { return set&(1<<n) != 0 }

// on tells whether there are occurrences on a date. Of the two fields of days, both must
// fit where one is *, else one is enough.
func (c Cron) on(d Date) bool {
	if !has(c.months, int(d.Month)) {
		return false
	}
	month, week := has(c.days, d.Day), has(c.weekdays, int(d.Weekday()))
	if c.days&star != 0 || c.weekdays&star != 0 {
		return month && week
	}
	return month || week
}

// Next is the first occurrence after an instant; ok is false if there is none within
// eight years, the longest time between two days of the calendar.
func (c Cron) Next(after time.Time) (next time.Time, ok bool) {
	day := DateOf(after, c.zone).Add(-1) // an occurrence may be put off over midnight
	for range horizon {
		if c.on(day) {
			if next, ok = c.within(day, after); ok {
				return next, true
			}
		}
		day = day.Add(1)
	}
	return time.Time{}, false
}

// within is the first occurrence of a day after an instant.
func (c Cron) within(day Date, after time.Time) (time.Time, bool) {
	if c.hours&star != 0 {
		return c.passing(day, after)
	}
	for hour := range 24 {
		if !has(c.hours, hour) {
			continue
		}
		for minute := range 60 {
			if !has(c.minutes, minute) {
				continue
			}
			if at := day.At(hour, minute, c.zone); at.After(after) {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// passing is within for occurrences that follow time as it passes.
func (c Cron) passing(day Date, after time.Time) (time.Time, bool) {
	at, end := day.At(0, 0, c.zone), day.Add(1).At(0, 0, c.zone).Add(3*time.Hour) // clocks may go back over midnight
	if from := after.Truncate(time.Minute).Add(time.Minute); from.After(at) {
		at = from
	}
	for ; at.Before(end); at = at.Add(time.Minute) {
		if local := at.In(c.zone); has(c.minutes, local.Minute()) && DateOf(at, c.zone) == day {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// Closest is the least number of minutes between two occurrences, on days on which clocks
// are not changed.
func (c Cron) Closest() int {
	closest, last := 2*24*60, -1
	first := 0
	for at := range 24 * 60 {
		if !has(c.hours, at/60) || !has(c.minutes, at%60) {
			continue
		}
		if last >= 0 {
			closest = min(closest, at-last)
		} else {
			first = at
		}
		last = at
	}
	if last < 0 {
		return closest
	}
	return min(closest, first+24*60-last) // on the next day
}
