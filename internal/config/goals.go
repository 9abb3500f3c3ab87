package config

import (
	"fmt"

	"yardmaster/internal/lazy"
)

var place = lazy.New(`^[a-z0-9][a-z0-9.:-]*/[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$`)

// settleGoals checks GoalsRepo.
func (c *Config) settleGoals() error {
	if c.GoalsRepo != "" && !place.MatchString(c.GoalsRepo) {
		return fmt.Errorf("goals-repo (from %s): %q has not the form HOST/OWNER/NAME", c.sources["goals-repo"], c.GoalsRepo)
	}
	return nil
}
