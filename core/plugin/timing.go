package plugin

import "time"

// timing holds the deadlines of the design, so that tests can shorten them.
type timing struct {
	start          time.Duration // from exec to a connection
	configure      time.Duration // each of Init, Configure and Profile
	drain          time.Duration
	termGrace      time.Duration
	killGrace      time.Duration
	healthEvery    time.Duration
	healthTime     time.Duration
	healthMisses   int
	classify       time.Duration
	observe        time.Duration
	observeEvery   time.Duration // between two observations of one account
	urgentEvery    time.Duration // between two of them when an urgent header changed
	leaseWait      time.Duration // of a caller
	leaseProof     time.Duration // of an adapter that let a caller wait, to show that it is there
	leaseTime      time.Duration // of the call in the background
	leaseAhead     time.Duration // before its end a lease in use is renewed
	refreshMemory  time.Duration // how long the answer to a refusal serves those who were refused likewise
	readQuota      time.Duration
	call           time.Duration // the rest
	watchFirst     time.Duration // before a watch is opened again, doubling to watchMost
	watchMost      time.Duration
	probeMost      time.Duration // between two probes, however idle or failing
	probeIdle      time.Duration // without use for so long an account is probed less often
	wakeupEvery    time.Duration // how often it is looked whether the machine slept
	wakeupSuspects time.Duration // that the machine slept, when its clocks differ by more
}

func designTiming() timing {
	return timing{
		start:          5 * time.Second,
		configure:      10 * time.Second,
		drain:          10 * time.Second,
		termGrace:      termGrace,
		killGrace:      killGrace,
		healthEvery:    10 * time.Second,
		healthTime:     2 * time.Second,
		healthMisses:   3,
		classify:       time.Second,
		observe:        2 * time.Second,
		observeEvery:   time.Second,
		urgentEvery:    100 * time.Millisecond,
		leaseWait:      5 * time.Second,
		leaseProof:     time.Second,
		leaseTime:      30 * time.Second,
		leaseAhead:     time.Minute,
		refreshMemory:  10 * time.Second,
		readQuota:      15 * time.Second,
		call:           10 * time.Second,
		watchFirst:     time.Second,
		watchMost:      time.Minute,
		probeMost:      5 * time.Minute,
		probeIdle:      15 * time.Minute,
		wakeupEvery:    5 * time.Second,
		wakeupSuspects: 15 * time.Second,
	}
}
