package agent

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// The pace of serve -dev. Three simulated accounts at sixty times the speed of life serve a request every one and a half
// seconds; this asks for about two thirds of it, so that there is something to see and seldom nobody to serve.
const (
	devArrival     = 13 * time.Second
	devThink       = 6 * time.Second
	devTurns       = 6
	devHurry       = time.Second
	devHurryTurns  = 40
	devMaxSessions = 12
	devMaxWait     = 30 * time.Second
)

// devTraffic plays clients of the simulated provider against the proxy listener until ctx ends, and returns when all
// have left. The first one works in a hurry: the account that it is given is soon used up, and it moves. The key is asked
// for with every request, since a newcomer may well try to rotate it.
func devTraffic(ctx context.Context, baseURL string, key func() (string, error), log hclog.Logger) {
	client := &devClient{
		http: &http.Client{Transport: &http.Transport{Proxy: nil}},
		url:  strings.TrimSuffix(baseURL, "/") + "/simulated/v1/turns",
		key:  key,
		log:  log,
	}
	defer client.http.CloseIdleConnections()
	var live sync.WaitGroup
	defer live.Wait()
	places := make(chan struct{}, devMaxSessions)
	dice := rand.New(rand.NewPCG(1, 2))
	for number := 1; ; number++ {
		session := devSession{name: fmt.Sprintf("dev-%04d", number), turns: 1 + dice.IntN(2*devTurns), think: devThink}
		if number == 1 {
			session.turns, session.think = devHurryTurns, devHurry
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		live.Go(func() {
			defer func() { <-places }()
			client.play(ctx, session, rand.New(rand.NewPCG(3, uint64(number))))
		})
		if !pauseFor(ctx, spread(devArrival, dice)) {
			return
		}
	}
}

// devSession is one client conversation.
type devSession struct {
	name  string
	turns int
	think time.Duration
}

type devClient struct {
	http *http.Client
	url  string
	key  func() (string, error)
	log  hclog.Logger
}

// play lets a session ask, read and think until it has had its turns.
func (c *devClient) play(ctx context.Context, session devSession, dice *rand.Rand) {
	for range session.turns {
		again, err := c.turn(ctx, session.name)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.log.Warn("simulated client failed", "session", session.name, "error", err)
		}
		if !pauseFor(ctx, max(again, spread(session.think, dice))) {
			return
		}
	}
}

// turn sends one request and reads its answer to the end. again is how long the answer asks to wait.
func (c *devClient) turn(ctx context.Context, session string) (again time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(
		`{"model":"simulated-large","session":"`+session+`","stream":true,"prompt":"What turns the wheel?"}`))
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	key, err := c.key()
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-Noria-Key", key)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("send request: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		again = min(time.Duration(seconds)*time.Second, devMaxWait)
	}
	if response.StatusCode >= 400 && again == 0 {
		return 0, fmt.Errorf("read answer: status %d", response.StatusCode)
	}
	return again, nil
}

// spread gives a time between half and one and a half of mean.
func spread(mean time.Duration, dice *rand.Rand) time.Duration {
	return mean/2 + time.Duration(dice.Int64N(int64(mean)))
}

// pauseFor returns false when ctx ended first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
