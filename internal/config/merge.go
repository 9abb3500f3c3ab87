package config

import "fmt"

// settleMerge checks how long merges wait.
func (c *Config) settleMerge() error {
	if c.MergeGrace < 0 || c.MergeGrace > 600 {
		return fmt.Errorf("merge-grace (from %s): must be 0 to 600 seconds", c.sources["merge-grace"])
	}
	return nil
}
