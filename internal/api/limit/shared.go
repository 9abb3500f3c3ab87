package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Limiter keeps buckets: a Counter or a Shared.
type Limiter interface {
	// Take takes a slot of a bucket with the limit max, which must be positive and
	// below 65536. If no slot is free, it takes none and returns false.
	Take(b Bucket, max int) (State, bool)
}

const (
	// answerTime limits how long a request waits for the server.
	answerTime = 50 * time.Millisecond
	// pause is how long a server that did not answer is not asked again.
	pause = time.Second
)

// Shared keeps the buckets of several nodes in one Redis or Valkey server, counted
// by that server's clock. It also counts in this process: while the server does not
// answer in time, this process's counts decide. Its methods may be called
// concurrently.
type Shared struct {
	here  *Counter
	redis *redis.Client
	clock func() time.Time
	log   *slog.Logger
	wait  time.Duration
	// away is 0 while the server answers, else the time in Unix nanoseconds from
	// which it may be asked again.
	away atomic.Int64
}

// Share returns a Shared for the server at an address such as
// redis://:PASSWORD@HOST:6379/0, or rediss:// over TLS. It does not connect yet. It
// returns an error if the address is malformed.
func Share(address string, clock func() time.Time, log *slog.Logger) (*Shared, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errors.New("is no address such as redis://HOST:6379/0") // the cause may quote a password
	}
	logging.Disable() // Take logs a failure itself, once
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = time.Second, time.Second, time.Second, time.Second
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries, o.DisableIdentity = true, -1, 1, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &Shared{here: New(clock), redis: redis.NewClient(o), clock: clock, log: log, wait: answerTime}, nil
}

// take runs Take on the server: a hash holds the number of slots taken in each
// second. It returns whether a slot was free, how many are taken now, and when one
// becomes free.
var take = redis.NewScript(`
local now = tonumber(redis.call('TIME')[1])
local window = tonumber(ARGV[2])
local all = redis.call('HGETALL', KEYS[1])
local sum, oldest, gone = 0, now, {}
for i = 1, #all, 2 do
  local at = tonumber(all[i])
  if at <= now - window then
    gone[#gone + 1] = all[i]
  else
    sum = sum + tonumber(all[i + 1])
    if at < oldest then oldest = at end
  end
end
if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
local room = 0
if sum < tonumber(ARGV[1]) then
  room = 1
  sum = sum + 1
  redis.call('HINCRBY', KEYS[1], now, 1)
  redis.call('EXPIRE', KEYS[1], window)
end
return {room, sum, oldest + window - now}`)

// Take implements Limiter.
func (s *Shared) Take(b Bucket, max int) (State, bool) {
	state, room := s.here.Take(b, max)
	again := s.away.Load()
	if now := s.clock().UnixNano(); again != 0 && (now < again || !s.away.CompareAndSwap(again, now+int64(pause))) {
		return state, room
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	got, err := take.Run(ctx, s.redis, []string{Key(b)}, max, seconds).Int64Slice()
	if err == nil && len(got) != 3 {
		err = fmt.Errorf("%d numbers", len(got))
	}
	if err != nil {
		if s.away.Swap(s.clock().UnixNano()+int64(pause)) == 0 {
			s.log.Warn("The server that request counts are shared through does not answer; each node counts for itself.",
				"error", err)
		}
		return state, room
	}
	if again != 0 {
		s.away.Store(0)
		s.log.Info("Request counts are shared again.")
	}
	return State{Limit: max, Remaining: left(max, int(got[1])), Reset: int(got[2])}, got[0] == 1
}

// Ping returns an error unless the server answers.
func (s *Shared) Ping(ctx context.Context) error { return s.redis.Ping(ctx).Err() }

// Close closes the connections.
func (s *Shared) Close() error { return s.redis.Close() }

// Key returns the name of a bucket for all nodes. Only the last part may contain any
// characters.
func Key(b Bucket) string {
	ip := ""
	if b.IP != (netip.Addr{}) {
		ip = b.IP.String()
	}
	return strings.Join([]string{"yardmaster:limit", b.Name, ip, b.Who, b.Talk}, "|")
}

// left returns how many slots are free in a bucket whose limit may have been
// lowered.
func left(most, taken int) int { return max(0, most-taken) }
