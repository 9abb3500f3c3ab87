package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/version"
)

// checkout is what is released.
type checkout struct {
	source, version, commit string
	dirty                   bool      // it may have changes
	at                      time.Time // of the commit: the only time that goes into a file
}

// identify finds the version, the commit and its time, and refuses what has changes.
func (c *checkout) identify() error {
	if c.dirty && c.version != "" && c.commit != "" && os.Getenv("SOURCE_DATE_EPOCH") != "" {
		return c.timed(os.Getenv("SOURCE_DATE_EPOCH")) // there may be no git at all
	}
	commit, err := c.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	changes, err := c.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !c.dirty {
		return fmt.Errorf("the checkout has changes, so its version would not say what was built:\n%s", changes)
	}
	c.commit = commit
	if c.version == "" {
		c.version, _ = c.git("describe", "--tags", "--exact-match", "--match", "v[0-9]*") // it has none
	}
	at, err := c.git("show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return err
	}
	return c.timed(at)
}

// same refuses a checkout that has become another one since it was identified: a release takes minutes.
func (c *checkout) same() error {
	if c.dirty {
		return nil
	}
	now := checkout{source: c.source, version: c.version}
	if err := now.identify(); err != nil {
		return err
	}
	if now.commit != c.commit {
		return fmt.Errorf("the checkout was at %.12s when this began, and is at %.12s", c.commit, now.commit)
	}
	return nil
}

func (c *checkout) timed(at string) error {
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return err
	}
	c.at = time.Unix(seconds, 0).UTC()
	switch {
	case c.version == "":
		return errors.New("the commit has no tag such as v1.2.3: say the version (VERSION=v1.2.3)")
	case !strings.HasPrefix(c.version, "v") || !version.Valid(c.version) || strings.Contains(c.version, "+"):
		return fmt.Errorf("%q is no version such as v1.2.3 or v1.3.0-rc.1", c.version)
	case c.dirty && strings.Contains(c.version, "-"):
		c.version += ".dirty"
	case c.dirty:
		c.version += "-dirty"
	}
	return nil
}

func (c *checkout) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", c.source}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), err
}
