package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"yardmaster/internal/box/program"
	"yardmaster/internal/client"
	"yardmaster/internal/id"
	"yardmaster/internal/minisign"
	"yardmaster/internal/protocol"
	"yardmaster/internal/proxies"
)

// update is what a box does about the program that it was told to take.
type update struct {
	keys []minisign.Key
	wake chan struct{} // there may be something to do
	swap chan struct{} // closed: this process makes room for another program
	once sync.Once

	// Guarded by the mutex of the box.
	clearing bool // no claim begins, so that the box has no run
	asking   bool // a claim is under way
	night    bool // the runs did not end in time
	trial    string
}

// openUpdate reads the keys of releases, and whether this program is on trial.
func (b *box) openUpdate() error {
	b.update.wake, b.update.swap = make(chan struct{}, 1), make(chan struct{})
	if b.cfg.Programs == nil {
		return nil
	}
	texts := b.cfg.ReleaseKeys
	if len(texts) == 0 {
		texts = b.keys.get().ReleaseKeys
	}
	for _, text := range texts {
		key, err := minisign.ParseKey(text)
		if err != nil {
			return fmt.Errorf("%.80q is no public key of minisign", text)
		}
		b.update.keys = append(b.update.keys, key)
	}
	now, err := b.cfg.Programs.State()
	if err == nil && now.Trial != nil && now.Trial.Of.SHA256 == os.Getenv(program.Variable) {
		b.update.trial = id.New()
	}
	nudge(b.update.wake)
	return err
}

// updateReport is what the box says of its updates; nil if it updates nothing.
func (b *box) updateReport() *protocol.UpdateReport {
	if b.cfg.Programs == nil {
		return nil
	}
	now, err := b.cfg.Programs.State()
	r := now.Report(len(b.update.keys))
	if err != nil {
		r.Why = err.Error()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.State == protocol.UpdateReady && b.update.night {
		r.State = protocol.UpdateNight
	}
	return &r
}

// takeUpdate notes what the box is told to take. What it may not take fails at once.
func (b *box) takeUpdate(c protocol.Command) (err error) {
	defer nudge(b.beat)
	defer nudge(b.update.wake)
	if c.Update == nil {
		return b.cfg.Programs.Forget()
	}
	if err := program.Check(b.cfg.Version, b.update.keys, *c.Update); err != nil {
		b.log.Warn("a program was refused", "version", c.Update.Version, "reason", err)
		return b.cfg.Programs.Refuse(program.Copy{Command: c.ID, Of: *c.Update}, err.Error(), time.Now())
	}
	return b.cfg.Programs.Want(c.ID, *c.Update)
}

// keepUpdated fetches what is wanted while the box goes on, and makes room for it between two
// runs.
func (b *box) keepUpdated(ctx context.Context) {
	if b.cfg.Programs == nil {
		return
	}
	for tries := 0; ctx.Err() == nil; {
		now, err := b.cfg.Programs.State()
		switch {
		case err == nil && now.Wanted != nil:
			if err = b.fetchProgram(ctx, now); err == nil {
				tries = 0
				nudge(b.update.wake)
				nudge(b.beat)
			}
		case err == nil && now.Ready != nil:
			if err = b.makeRoom(ctx, *now.Ready); err == nil {
				nudge(b.update.wake)
			}
		}
		if err != nil && ctx.Err() == nil {
			tries++
			b.log.Warn("the update waits", "error", err)
			pause(ctx, min(b.cfg.Timing.Retry<<min(tries, 9), 5*time.Minute), b.update.wake)
			continue
		}
		select {
		case <-ctx.Done():
		case <-b.update.wake:
		}
	}
}

// pause waits for a time, or until there is something new.
func pause(ctx context.Context, d time.Duration, sooner <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-sooner:
	case <-time.After(d):
	}
}

// fetchProgram downloads what is wanted. A program that was not taken before waits until its time.
func (b *box) fetchProgram(ctx context.Context, now program.State) error {
	if f := now.Failed; f != nil && f.Of.SHA256 == now.Wanted.Of.SHA256 {
		pause(ctx, min(time.Until(f.Again), 24*time.Hour), b.update.wake)
		if again, err := b.cfg.Programs.State(); err != nil || again.Wanted == nil || time.Now().Before(f.Again) {
			return err
		}
	}
	err := b.cfg.Programs.Fetch(ctx, b.cfg.Version, b.update.keys, b.openRelease)
	var refused *program.RefusedError
	if errors.As(err, &refused) {
		b.log.Error("a program was refused", "version", now.Wanted.Of.Version, "reason", refused.Reason)
		return b.cfg.Programs.Fail(*now.Wanted, refused.Reason, time.Now())
	}
	if err == nil {
		b.log.Info("a program was verified, and waits until the box has no run", "version", now.Wanted.Of.Version)
	}
	return err
}

// fetchWait limits a download.
const fetchWait = 30 * time.Minute

// openRelease asks the control plane where a program is, and opens it. The credential of the box
// goes to the control plane alone.
func (b *box) openRelease(ctx context.Context, u protocol.Update) (io.ReadCloser, error) {
	me := b.keys.get()
	var place struct {
		URL string `json:"url"`
	}
	err := b.get(ctx, me.ServerURL+"/v1/runners/releases/"+u.Release+"/program", me.RunToken.Value, &place)
	var p *client.Problem
	if errors.As(err, &p) && (p.Status == http.StatusNotFound || p.Status == http.StatusConflict) {
		return nil, &program.RefusedError{Reason: "The control plane does not hand it out: " + p.Error()}
	}
	if err != nil {
		return nil, err
	}
	whole, cancel := context.WithTimeout(ctx, fetchWait)
	req, err := http.NewRequestWithContext(whole, http.MethodGet, place.URL, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	proxies.SpareServer(ctx, me.ServerURL)
	resp, err := http.DefaultClient.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = fmt.Errorf("the program is not handed out: %s", resp.Status)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return body{resp.Body, cancel}, nil
}

// body is an answer that ends its request when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// get asks the control plane for something, with the box's durable token.
func (b *box) get(ctx context.Context, url, token string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	proxies.SpareServer(ctx, url)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := direct.Do(req)
	if err != nil {
		return &client.Unreachable{URL: req.URL.Scheme + "://" + req.URL.Host, Err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		p := &client.Problem{Status: resp.StatusCode}
		if json.Unmarshal(text, p) != nil || p.Type == "" {
			return fmt.Errorf("%s answered %s", url, resp.Status)
		}
		return p
	}
	return json.Unmarshal(text, out)
}

// claiming notes that a claim is under way while do runs.
func (b *box) claiming(do func() error) error {
	b.mu.Lock()
	b.update.asking = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.update.asking = false
		b.mu.Unlock()
	}()
	return do()
}

// clear has the box begin no claim, or lets it begin them again.
func (b *box) clear(on bool) {
	b.mu.Lock()
	b.update.clearing = on
	b.mu.Unlock()
	nudge(b.beat) // which ends the claim that waits
	nudge(b.freed)
}

// idle tells whether the box has no run and can be given none.
func (b *box) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.runs)+len(b.orphans) == 0 && !b.update.asking
}

// makeRoom waits until the box has no run, and has this process make room for a program that is
// ready. If the runs do not end in time, it takes work again, and tries once more at night.
func (b *box) makeRoom(ctx context.Context, c program.Copy) error {
	b.clear(true)
	if b.awaitIdle(ctx, c) {
		if err := b.cfg.Programs.Try(); err != nil {
			b.clear(false)
			return err
		}
		b.log.Info("the box makes room for another program", "version", c.Of.Version)
		b.update.once.Do(func() { close(b.update.swap) })
		return nil
	}
	b.clear(false)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.setNight(true)
	b.log.Info("the runs did not end in time, the update waits for the night", "version", c.Of.Version)
	nudge(b.beat)
	pause(ctx, untilNight(time.Now()), b.update.wake)
	b.setNight(false)
	return ctx.Err()
}

func (b *box) setNight(on bool) {
	b.mu.Lock()
	b.update.night = on
	b.mu.Unlock()
}

// awaitIdle waits until the box has no run; false if it has some when its time is over, or is to
// take another program.
func (b *box) awaitIdle(ctx context.Context, c program.Copy) bool {
	over := time.NewTimer(time.Duration(c.Of.IdleMS) * time.Millisecond)
	defer over.Stop()
	look := time.NewTicker(max(b.cfg.Timing.Retry/4, 10*time.Millisecond))
	defer look.Stop()
	for !b.idle() {
		select {
		case <-ctx.Done():
			return false
		case <-over.C:
			return false
		case <-look.C:
		}
	}
	now, err := b.cfg.Programs.State()
	return err == nil && now.Ready != nil && now.Ready.Command == c.Command
}

// The night of a box, by the clock of its machine.
const nightHour = 2

// untilNight is how long it is until the next night begins.
func untilNight(now time.Time) time.Duration {
	night := time.Date(now.Year(), now.Month(), now.Day(), nightHour, 0, 0, 0, now.Location())
	if !night.After(now) {
		night = time.Date(now.Year(), now.Month(), now.Day()+1, nightHour, 0, 0, 0, now.Location())
	}
	return night.Sub(now)
}

// onTrial tells whether this program has yet to prove itself.
func (b *box) onTrial() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.update.trial != ""
}

// tryOut claims, prepares and gives back the run that proves this program, as soon as the box may
// claim at all. Until it has, the box claims nothing else.
func (b *box) tryOut(ctx context.Context) {
	err := b.trial(ctx)
	if err == nil {
		err = b.cfg.Programs.Good()
	}
	if err != nil {
		if ctx.Err() == nil {
			b.log.Warn("the trial of this program has not succeeded yet", "error", err)
			err = b.cfg.Programs.Complain(err.Error())
		}
		if err != nil {
			b.log.Warn("what keeps this program from its trial is not noted", "error", err)
		}
		sleep(ctx, b.cfg.Timing.Retry)
		return
	}
	b.mu.Lock()
	b.update.trial = ""
	b.mu.Unlock()
	b.log.Info("this program has proved itself, and stays")
	nudge(b.beat)
	nudge(b.update.wake)
}

func (b *box) trial(ctx context.Context) error {
	b.mu.Lock()
	greeted, trial := b.greeted, b.update.trial
	b.mu.Unlock()
	if reason := b.cannotRun(); reason != "" {
		return errors.New(reason)
	}
	if !greeted {
		return errors.New("the control plane has not answered yet")
	}
	call, cancel := context.WithTimeout(ctx, b.cfg.Timing.Renew)
	defer cancel()
	var got protocol.Trial
	if err := b.conn.Call(call, protocol.CallTrial, protocol.TrialClaim{ID: trial, Version: b.cfg.Version}, &got); err != nil {
		return err
	}
	word, err := b.secret.Open(protocol.TokensPurpose(trial), got.Sealed)
	if err != nil {
		b.greetAgain()
		return errors.New("what the control plane gave is not sealed to this process")
	}
	if err := b.setup.selfTest(ctx); err != nil {
		return err
	}
	call, cancel = context.WithTimeout(ctx, b.cfg.Timing.Renew)
	defer cancel()
	return b.conn.Call(call, protocol.CallTrialDone, protocol.TrialDone{ID: trial, Version: b.cfg.Version, Word: string(word)}, nil)
}
