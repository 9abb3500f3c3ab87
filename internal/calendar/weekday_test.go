package calendar

import (
	"strings"
	"testing"
	"time"
)

// Sunday is at both ends of the week, as crontab(5) has it.
func TestSundayIsSevenToo(t *testing.T) {
	t.Parallel()
	for text, same := range map[string]string{
		"7": "0", "1-7": "1,2,3,4,5,6,0", "5-7": "5,6,0", "6,7": "6,0", "0-7": "0,1,2,3,4,5,6", "sat-sun": "6,0", "Mon-Sun": "0-6",
		"7,1": "0,1", "1-7/2": "1,3,5,0", "0-7/7": "0", "3-7/2,mon": "3,5,0,1", "7-7": "0", "fri-7": "5,6,0", "1-5,7": "0-5",
		"sun-tue": "0-2", "0-6": "*/1",
	} {
		got, err := ReadCron("0 9 * * "+text, time.UTC)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want, err := ReadCron("0 9 * * "+same, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if got.weekdays&^star != want.weekdays&^star {
			t.Errorf("%s: %b, want %b", text, got.weekdays, want.weekdays)
		}
		if _, err := ParseCron("0 9 * * "+text, time.UTC); err != nil && text != "0-7/7" {
			t.Errorf("a person's %s: %v", text, err)
		}
	}
	for _, text := range []string{"8", "1-8", "7-5", "5-1", "tue-mon", "7/2", "1-7/7", "0-7/8", "7-", "-7", "sun-sat-sun",
		"1-7/0", "1-7/x"} {
		if _, err := ParseCron("0 9 * * "+text, time.UTC); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// What other readers of such expressions know and this one does not is refused in its own words.
func TestNoCronSaysWhatIsNoValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0 0 L * *": `its day of the month, "L": "l" is no value of it`, "0 0 15W * *": "no value of it", "0 0 * * 1#1": "no value of it",
		"0 0 * foo *": "no value of it", "0 0 * an *": "no value of it", "H 0 * * *": "no value of it", "0 0 * * 5L": "no value of it",
		"0 mon * * *": "no value of it",
	} {
		_, err := ParseCron(text, time.UTC)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
