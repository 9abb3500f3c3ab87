package money

import "testing"

func TestDollars(t *testing.T) {
	for micros, want := range map[int64]string{0: "0.00", 1: "0.000001", 10_000: "0.01", 1_230_000: "1.23", 1_234_500: "1.2345",
		-500_000: "-0.50", 12_000_000: "12.00"} {
		if got := Dollars(micros); got != want {
			t.Errorf("%d is %s, want %s", micros, got, want)
		}
	}
	if DollarsOrNone(nil) != nil || USD(nil) != nil || Micros(nil) != nil {
		t.Error("an unknown amount is printed")
	}
	half := 0.5
	if n := Micros(&half); *n != 500_000 || *USD(n) != half {
		t.Errorf("half a dollar is %d", *n)
	}
}

func TestShown(t *testing.T) {
	for dollars, want := range map[string]string{"12.000939": "$12.00", "0.0178": "$0.02", "0.0064": "$0.0064", "0.00": "$0.00",
		"-0.50": "$-0.50", "nonsense": "$nonsense"} {
		if got := Shown(dollars); got != want {
			t.Errorf("%s is shown as %s, not %s", dollars, got, want)
		}
	}
}
