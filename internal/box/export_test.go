package box

// Clock and Timer are what a test tells the time with.
type (
	Clock = clock
	Timer = timer
)

// WithClock is a configuration whose box asks a clock for the end of Timing.Stall, of the
// push within Timing.Wrap, and of the wait for the goodbye.
func WithClock(cfg Config, c Clock) Config {
	cfg.clock = c
	return cfg
}
