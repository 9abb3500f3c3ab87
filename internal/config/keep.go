package config

import (
	"fmt"
	"strings"
	"time"
)

// Day is the unit of the settings that say how long rows are kept.
const Day = 24 * time.Hour

// mostDays is the longest time that rows can be said to be kept: about a century.
const mostDays = 36_500

// settleKeep checks how long rows are kept. A delivery that a code host sends again is known
// by its row.
func (c *Config) settleKeep() error {
	for _, s := range c.settings() {
		if !strings.HasPrefix(s.key, "keep-") && s.key != "deletion-wait" {
			continue
		}
		least := int64(1)
		switch s.key {
		case "keep-host-deliveries":
			least = 8 // a host sends again for a week what has failed
		case "keep-audit":
			least = 30 // who reads it reads of a month
		case "keep-mails":
			least = 0 // for good
		case "deletion-wait":
			least = 0 // none
		}
		if n := s.value.Int(); n < least || n > mostDays {
			return fmt.Errorf("%s (from %s): must be days, from %d to %d", s.key, c.sources[s.key], least, mostDays)
		}
	}
	return nil
}
