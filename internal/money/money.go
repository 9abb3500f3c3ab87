// Package money prints and reads amounts of dollars. The program keeps amounts as
// integer micro-dollars, so that sums are exact.
package money

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Dollars prints micro-dollars as a decimal with at least two places.
func Dollars(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	s := fmt.Sprintf("%s%d.%06d", sign, micros/1e6, micros%1e6)
	for range 4 {
		s = strings.TrimSuffix(s, "0")
	}
	return s
}

// DollarsOrNone is Dollars, or nil for nil.
func DollarsOrNone(micros *int64) *string {
	if micros == nil {
		return nil
	}
	s := Dollars(*micros)
	return &s
}

// Shown is an amount that Dollars prints, for people: to the cent, and below one cent as it is.
func Shown(dollars string) string {
	n, err := strconv.ParseFloat(dollars, 64)
	if err != nil || n != 0 && math.Abs(n) < 0.01 {
		return "$" + dollars
	}
	return fmt.Sprintf("$%.2f", n)
}

// USD is an amount as a JSON number; nil stays nil.
func USD(micros *int64) *float64 {
	if micros == nil {
		return nil
	}
	v := float64(*micros) / 1e6
	return &v
}

// Micros reads a JSON number of dollars; nil stays nil.
func Micros(usd *float64) *int64 {
	if usd == nil {
		return nil
	}
	n := int64(math.Round(*usd * 1e6))
	if *usd > 0 {
		n = max(n, 1) // a positive amount stays positive
	}
	return &n
}
